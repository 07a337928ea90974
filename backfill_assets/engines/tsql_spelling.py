"""How the three T-SQL warehouses write what engines write differently; what one of them has otherwise is given by it.

Nothing here names an engine: a difference is an argument, and stands with its reason in the engine's own module.
"""

from __future__ import annotations

from backfill_assets.engines.protocol import Spelling
from backfill_assets.engines.texts import unpadded

# every letter and every blank tells two texts apart, also where the database's own collation sees none of it
BINARY = "Latin1_General_100_BIN2"
BINARY_UTF8 = "Latin1_General_100_BIN2_UTF8"


def spelling(
    *,
    wide: bool,
    instants: bool,
    case_sensitive: bool,
    index: str | None,
    table_options: str,
    ddl_rolls_back: bool,
    view_rolls_back: bool,
    claims_are_rows: bool,
    limits: str | None,
    slow: str | None,
    dialect: str = "tsql",
) -> Spelling:
    """Return a spelling. `wide`: text is nvarchar and its literals N'...', else varchar in UTF-8. `instants`: there is datetimeoffset."""
    kind, longest, n = ("nvarchar", 4000, "N") if wide else ("varchar", 8000, "")
    binary = BINARY if wide else BINARY_UTF8
    text, words = f"{kind}({longest})", f"{kind}(max)"
    moment = "datetimeoffset(6)" if instants else "datetime2(6)"

    def apart(a: str, b: str, values: str) -> str:
        return (
            f"({values} OR ({a} IS NULL AND {b} IS NOT NULL) OR ({a} IS NOT NULL AND {b} IS NULL))"
        )

    return Spelling(
        dialect=dialect,
        literals={
            "date": "CAST('{}' AS date)",
            "timestamp": "CAST('{}' AS datetime2(6))",
            # a text with an offset becomes the same instant; without a type for instants, UTC's clock shows it
            "timestamptz": "CAST('{}' AS datetimeoffset(6))"
            if instants
            else "CAST(CAST('{}' AS datetimeoffset(6)) AT TIME ZONE 'UTC' AS datetime2(6))",
            "int_yyyymmdd": "{}",
            # Windows collations pass over hyphens when they put texts in order
            "iso_text": f"{n}'{{}}' COLLATE {binary}",
        },
        row_hash="CAST(SUBSTRING(HASHBYTES('SHA2_256', {columns}), 1, 8) AS bigint)",
        column_hash=_column_hash(words, n, binary),
        hash_joint=" + ",
        hash_sum="CAST(coalesce(sum(CAST({hash} AS decimal(38, 0))), 0) AS varchar(40))",
        try_cast="TRY_CAST({value} AS {type})",
        case_sensitive=case_sensitive,
        longest_name=128,
        default_schema="dbo",
        index=index,
        identity="SELECT @@SERVERNAME, DB_NAME()",
        # a column counts what it holds, or the server fills it; of another database this catalog tells nothing
        computed=(
            "SELECT name FROM sys.columns WHERE object_id = OBJECT_ID({table})"
            " AND (is_computed = 1 OR is_identity = 1)"
            " AND coalesce(PARSENAME({table}, 3), DB_NAME()) = DB_NAME()"
        ),
        who_am_i="SELECT USER_NAME()",
        limits=limits,
        slow=slow,
        grants={
            "rows": "GRANT {right} ON {table} TO {role}",
            "stage": (
                "GRANT CREATE TABLE TO {role};"
                " GRANT ALTER, SELECT, INSERT, UPDATE, DELETE ON SCHEMA::[backfill] TO {role}"
            ),
            "make": "GRANT CREATE TABLE TO {role}; GRANT ALTER ON SCHEMA::{schema} TO {role}",
            "schema": "GRANT CREATE SCHEMA TO {role}",
        },
        ddl_rolls_back=ddl_rolls_back,
        view_rolls_back=view_rolls_back,
        # what all three document; permissions stay, and a view that has gone is not made anew
        replace_view="ALTER VIEW {view}{options} AS {query}",
        view=(
            "SELECT CASE WHEN o.type = 'V' AND EXISTS (SELECT 1 FROM sys.indexes AS i WHERE i.object_id = o.object_id)"
            " THEN 'indexed view' WHEN o.type = 'V' THEN 'view' WHEN o.type = 'SN' THEN 'synonym' ELSE 'table' END,"
            " m.definition, CASE WHEN m.is_schema_bound = 1 THEN ' WITH SCHEMABINDING' ELSE '' END"
            " FROM sys.objects AS o LEFT JOIN sys.sql_modules AS m ON m.object_id = o.object_id"
            " WHERE o.object_id = OBJECT_ID({relation_text})"
        ),
        views=(
            "SELECT s.name, o.name, m.definition FROM sys.objects AS o JOIN sys.schemas AS s ON s.schema_id = o.schema_id"
            " JOIN sys.sql_modules AS m ON m.object_id = o.object_id WHERE o.type = 'V'"
            " AND (m.definition IS NULL OR lower(m.definition) LIKE '%' + lower({name_text}) + '%')"
        ),
        row_policies=(
            "SELECT f.predicate_type_desc, f.operation_desc, f.predicate_definition, p.is_enabled"
            " FROM sys.security_predicates AS f JOIN sys.security_policies AS p ON p.object_id = f.object_id"
            " WHERE f.target_object_id = OBJECT_ID({relation_text})"
        ),
        claims_are_rows=claims_are_rows,
        # DROP TABLE IF EXISTS is not known to a dedicated pool
        drop_table="IF OBJECT_ID({name_text}) IS NOT NULL DROP TABLE {name}",
        text_type=text,
        log_types={
            "datetime": moment,
            "float": "float",
            "audit_id": f"{kind}(64) COLLATE {binary}",
            # an index takes keys of 1,700 bytes
            "table_name": f"{kind}(800) COLLATE {binary}",
            "detail": f"{words} COLLATE {binary}",
            "str": f"{text} COLLATE {binary}",
        },
        text=f"{n}{{literal}}",
        # the first part can use an index; the second is exact: = passes over case, accents and blanks at the end
        same_text=f"({{column}} = {{value}} AND CAST({{column}} AS {text}) + {n}'|' = {{value}} + {n}'|' COLLATE {binary})",
        differs=apart("{a}", "{b}", "{a} <> {b}"),
        text_differs=apart("{a}", "{b}", f"{{a}} + {n}'|' <> {{b}} + {n}'|' COLLATE {binary}"),
        first="SELECT {distinct}TOP ({count}) {rest}",
        create_schema=(
            f"DECLARE @make {text} = {n}'CREATE SCHEMA ' + QUOTENAME({{name_text}});"
            " IF SCHEMA_ID({name_text}) IS NULL EXEC(@make)"
        ),
        create_table=f"IF OBJECT_ID({{name_text}}) IS NULL CREATE TABLE {{name}} ({{columns}}){table_options}",
        add_column="IF COL_LENGTH({table_text}, {name_text}) IS NULL ALTER TABLE {table} ADD {name} {type} NULL",
        one_value="AS {name} (value)",
        one_row="SELECT {values}",  # behind VALUES a dedicated pool takes no CAST, and so no instant
        # a sum of int is an int, and would overflow; of all wider types it stays what it is
        sum="sum(CASE WHEN 1 = 0 THEN CAST(0 AS bigint) ELSE {column} END)",
        epoch_seconds="DATEDIFF_BIG(second, CAST('1970-01-01T00:00:00+00:00' AS datetimeoffset(0)), {column})",
        in_steps="floor({seconds} * 1.0 / {step})",  # whole numbers divided stay whole, and cut towards zero
        # AT TIME ZONE knows the zones of Windows and not those of IANA
        day_of_instant=None,
        group_by_place=False,
        nested_ctes=False,
        flat_cases=True,  # ten CASE inside each other are the most
        key_parts=_column_hash(words, n, binary, zero="0E0"),
        key_joint=" + ",
        count_rows_apart="count(DISTINCT HASHBYTES('SHA2_256', {columns}))",
        instants_are_utc=not instants,
        # a letter that is no blank at the end, since = passes over those there
        exact_text=f"CAST({{column}} AS {words}) + {n}'|' COLLATE {binary}",
        shown_text="SUBSTRING({value}, 1, LEN({value}) - 1)",
        wide={"integer": "bigint", "decimal": "decimal(38, {scale})", "float": "float"},
        families={"bit": "boolean"},
        canonical=_canonical(words, n),
        joint=" + ",
        # only blanks can be cut off in all versions; a text of a number or a time has none at its end
        trim_end=_trim_end(n),
        trim_blanks="RTRIM({text})",
    )


def _trim_end(n: str) -> str:
    return (
        f"REPLACE(REPLACE(RTRIM(REPLACE(REPLACE({{text}}, {n}' ', {n}'_'), {{letter}}, {n}' ')), {n}' ', {{letter}}),"
        f" {n}'_', {n}' ')"
    )


def _canonical(words: str, n: str) -> dict[str, str]:
    """Return the texts of numbers and times; there is none that another engine would hash alike."""
    utc = "CAST(SWITCHOFFSET({column}, '+00:00') AS datetime2)"
    return {
        "decimal": unpadded(f"CAST({{column}} AS {words})", _trim_end(n), n),
        "timestamp": unpadded(f"CONVERT({words}, {{column}}, 121)", _trim_end(n), n),
        "timestamptz": unpadded(f"CONVERT({words}, {utc}, 121)", _trim_end(n), n),
    }


def _column_hash(words: str, n: str, binary: str, zero: str | None = None) -> dict[str, str]:
    """Return how each type enters the hash of a row: as text that gives back every bit, its length before it.

    With a `zero`, minus nothing is that too.
    """
    number = (
        "{column}" if zero is None else f"CASE {{column}} WHEN 0 THEN {zero} ELSE {{column}} END"
    )
    texts = {
        ("nvarchar", "varchar", "nchar", "char", "sysname"): f"CAST({{column}} AS {words})",
        ("float", "real"): f"CONVERT({words}, {number}, 3)",
        ("money", "smallmoney"): f"CONVERT({words}, {{column}}, 2)",
        ("binary", "varbinary"): f"CONVERT({words}, {{column}}, 2)",
        ("date",): f"CONVERT({words}, {{column}}, 23)",
        ("datetime2", "datetime", "smalldatetime"): f"CONVERT({words}, {{column}}, 126)",
        (
            "datetimeoffset",
        ): f"CONVERT({words}, CAST(SWITCHOFFSET({{column}}, '+00:00') AS datetime2), 126)",
        ("time",): f"CONVERT({words}, {{column}}, 121)",
        ("",): f"CAST({{column}} AS {words})",
    }
    return {
        kind: f"coalesce(CAST(DATALENGTH({shown}) AS {words}) + {n}':' + {shown}, {n}'~') COLLATE {binary}"
        for kinds, shown in texts.items()
        for kind in kinds
    }
