"""What PostgreSQL tells of a view: what it reads, who may replace it, and who sees which rows of a table."""

from __future__ import annotations

from typing import TypedDict


class _OfViews(TypedDict):
    view: str
    views: str
    replace_view: str
    ddl_patience: str
    view_rights: str
    row_policies: str


_VIEW = "FROM pg_catalog.pg_class AS c WHERE c.oid = to_regclass({view_text})"
_OWNER = "pg_get_userbyid(c.relowner)"

OF_VIEWS: _OfViews = {
    # without a path every name in the definition comes with its schema
    "view": (
        "WITH nowhere AS MATERIALIZED (SELECT set_config('search_path', '', true) AS path)"
        " SELECT CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' ELSE 'table' END,"
        " CASE WHEN c.relkind = 'v' THEN pg_get_viewdef(c.oid) END,"
        " coalesce(' WITH (' || array_to_string(c.reloptions, ', ') || ')', '')"
        " FROM nowhere CROSS JOIN pg_catalog.pg_class AS c"
        " WHERE nowhere.path = '' AND c.oid = to_regclass({relation_text})"
    ),
    "views": (
        "SELECT DISTINCT n.nspname, c.relname, CAST(NULL AS text) FROM pg_catalog.pg_depend AS d"
        " JOIN pg_catalog.pg_rewrite AS r ON r.oid = d.objid AND d.classid = 'pg_catalog.pg_rewrite'::regclass"
        " JOIN pg_catalog.pg_class AS c ON c.oid = r.ev_class"
        " JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace"
        " WHERE d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid = to_regclass({relation_text})"
        " AND c.oid <> d.refobjid"
    ),
    # options that are not named again would be gone, security_invoker among them
    "replace_view": "CREATE OR REPLACE VIEW {view}{options} AS {query}",
    "ddl_patience": "SET LOCAL lock_timeout = {milliseconds}",
    "view_rights": (
        f"SELECT 'owner', {_OWNER} {_VIEW} AND NOT pg_has_role(c.relowner, 'USAGE')"
        f" UNION ALL SELECT 'schema', current_user {_VIEW} AND NOT has_schema_privilege(c.relnamespace, 'CREATE')"
        f" UNION ALL SELECT 'select', {_OWNER} {_VIEW}"
        " AND NOT has_table_privilege(c.relowner, to_regclass({table_text}), 'SELECT')"
        # such a view reads with the rights of whoever reads it
        " UNION ALL SELECT 'reader', coalesce(pg_get_userbyid(nullif(a.grantee, 0)), 'PUBLIC')"
        " FROM pg_catalog.pg_class AS c CROSS JOIN LATERAL aclexplode(c.relacl) AS a"
        " WHERE c.oid = to_regclass({view_text}) AND a.privilege_type = 'SELECT'"
        " AND c.reloptions && ARRAY['security_invoker=true', 'security_invoker=on', 'security_invoker=1']"
        " AND NOT CASE a.grantee WHEN 0 THEN has_table_privilege('public', to_regclass({table_text}), 'SELECT')"
        " ELSE has_table_privilege(a.grantee, to_regclass({table_text}), 'SELECT') END"
    ),
    # to the owner of a table its policies do not apply, unless they are forced
    "row_policies": (
        "SELECT c.relrowsecurity, c.relforcerowsecurity, CASE WHEN c.relrowsecurity THEN pg_get_userbyid(c.relowner) END,"
        " p.permissive, CAST(p.roles AS text), p.cmd, p.qual, p.with_check FROM pg_catalog.pg_class AS c"
        " JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace"
        " LEFT JOIN pg_catalog.pg_policies AS p ON p.schemaname = n.nspname AND p.tablename = c.relname"
        " WHERE c.oid = to_regclass({relation_text})"
    ),
}
