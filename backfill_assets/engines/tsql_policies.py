"""What must not be written through a claim on T-SQL: a view, a synonym, or a table of which a policy may hide rows.

A filter predicate hides rows from a DELETE as from every reader, whoever asks, an owner too; the rows that are hidden
would come twice. Only the policy's own function knows for whom it hides some.
"""

from __future__ import annotations

from backfill_assets.engines.protocol import Spelling
from backfill_assets.engines.sql import text
from backfill_assets.engines.wording import BENEATH, NAME_IT

# sys.objects.type -> why a claim on it would not hold, and what to do
KINDS_BEYOND_A_CLAIM = {
    "V": (f"it is a view, and {BENEATH}", NAME_IT),
    "SN": (f"it is a synonym, and {BENEATH}", NAME_IT),
}
# a catalog shows a policy to whoever has one of these, and to all others an empty table
RIGHTS_TO_SEE = "'VIEW DEFINITION', 'ALTER ANY SECURITY POLICY', 'CONTROL'"


def catalog_of(relation: str) -> str:
    """Return the database in a relation's name as a prefix, with its dot; empty where it names none."""
    from sqlglot import exp

    catalog = exp.to_table(relation, dialect="tsql").args.get("catalog")
    return f"{catalog.sql(dialect='tsql')}." if catalog is not None else ""


def nature(spelling: Spelling, relation: str) -> str:
    """Return the query for what a name means: (type, a policy that is on and filters its rows); no row if nothing."""
    at = catalog_of(relation)
    return (
        f"SELECT o.type, p.name FROM {at}sys.objects AS o"
        f" LEFT JOIN {at}sys.security_predicates AS f ON f.target_object_id = o.object_id AND f.predicate_type = 0"
        f" LEFT JOIN {at}sys.security_policies AS p ON p.object_id = f.object_id AND p.is_enabled = 1"
        f" WHERE o.object_id = OBJECT_ID({text(spelling, relation)})"
    )


def seeing() -> str:
    """Return the query for how many rights the login has by which it sees every policy of its database."""
    return (
        "SELECT count(*) FROM sys.fn_my_permissions(NULL, 'DATABASE')"
        f" WHERE permission_name IN ({RIGHTS_TO_SEE})"
    )
