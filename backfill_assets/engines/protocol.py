"""What the write path asks of a warehouse: an engine opens sessions, a session runs statements.

Engines differ in how they spell things (`Spelling`, data) and in how they connect, stage, lock and
report errors (methods). Every driver error leaves a session as one of `backfill_assets.errors`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

from backfill_assets.table import SliceKind

if TYPE_CHECKING:
    import pyarrow as pa

Report = Callable[[str], None]


def silence(_: str) -> None:
    """Tell nobody: the report of a session that is given none."""


@dataclass(frozen=True)
class Spelling:
    """How an engine writes what the engines write differently. Templates use `str.format` fields.

    `literals`: a typed literal per kind of slice column, `{}` standing for the ISO text.
    `row_hash`: a NULL-safe hash of the columns `{columns}` of one row, as a number; each column enters it by
    the template of its type in `column_hash` ('' for all other types; `{column}` is its name, `{place}` its
    number from 1), and `hash_joint` stands between them.
    `hash_sum`: the sum of the hashes `{hash}` of all rows, as text.
    `try_cast`: the cast `{value}` to `{type}` that gives NULL where the engine can, and fails otherwise.
    `case_sensitive`: whether two quoted names that differ in case are two names.
    `default_schema`: where a table is whose name gives no schema.
    `longest_name`: bytes of the longest identifier that is not cut off.
    `forbidden`: characters that no name may hold, however it is quoted.
    `log_column`: the column `{type}` of a table that grows by one row at a time.
    `log_field`: the text of the field `{name}` of the JSON text `{column}`, where such a table is better kept in
    few columns; None where a column costs nothing.
    `count_rows_apart`: how many different rows of `{columns}` there are, two NULLs being no difference.
    `text_type`, `log_types`: the type of text, and of single columns of the audit that need another one.
    `text`: a text literal, from the quoted `{literal}`. `same_text`: whether `{column}` holds exactly the text
    `{value}`, whatever a collation takes for equal. `differs`, `text_differs`: whether two values, or two texts,
    `{a}` and `{b}` differ, two NULLs being no difference.
    `first`: the first `{count}` rows of `SELECT {distinct}{rest}`.
    `create_schema`, `create_table`, `add_column`: what makes them where they are not; beside the quoted `{name}` and
    `{table}` stand their text literals `{name_text}` and `{table_text}`.
    `one_value`: how a query of one column is named `{name}` behind FROM.
    `one_row`: the row `{values}` of an INSERT.
    `sum`: the sum of `{column}`, wide enough for all of a table.
    `group_by_place`: whether GROUP BY takes the numbers of columns.
    `nested_ctes`: whether a WITH may stand inside parentheses.
    `flat_cases`: whether many conditions stand in one CASE, because few may stand inside each other.
    `key_parts`, `key_joint`: how a column of a type ('' for all other types) stands among `{columns}` of
    `count_rows_apart`, minus nothing being nothing.
    `instants_are_utc`: whether instants are kept as a clock without a zone, which shows UTC.
    `identity`: the query whose one row no other warehouse gives; None where the address tells.
    `epoch_seconds`: the seconds of the time `{column}` since 1970, a wall clock being taken for UTC's.
    `in_steps`: the number of the `{step}` seconds in which the second `{seconds}` lies.
    `day_of_instant`: the day of the instant `{column}` in the zone `{zone}`, a literal of its IANA name; None where
    the engine does not know these names.
    `folds_upper`: whether a plain lower-case name is the upper-case one that SQL without quotes means by it.
    `scale_0_is_whole`: whether a decimal without places is how whole numbers are stored.
    `index`: the statement that makes an index `{name}` of `{table}` on `{columns}`; None where one does not pay.
    `computed`: the query for the columns that `{table}` (a text literal of its SQL name) fills itself and lets nobody
    insert; None where there are none.
    What the doctor asks, each None or empty where there is no such thing: `who_am_i`, the query for the role;
    `limits`, the query for a session's lock wait and
    statement limit as the server shows them; `slow`, a query that takes many seconds; `grants`, the statements that
    grant what a role lacks, with fields `{right}`, `{table}`, `{schema}`, `{database}` and `{role}`: `rows` (SELECT,
    DELETE, INSERT on a table), `stage` (to make stages), `make` (to make tables in a schema), `schema` (to make schemas), and
    `read` where SELECT alone is another statement; `grants_to_text`: whether `{role}` is a text there and no name.
    `claims_are_rows`: whether a claim is a row of a table that is made for it and stays.
    `asks_for_partitions`: whether a table may refuse what names none of its partition columns.
    `ddl_rolls_back`: whether a table that a transaction made is gone when it is rolled back; where not, none is made
    inside one. `drop_table`: what removes the table `{name}` (a text literal: `{name_text}`) if it is there.
    `view`: the query for what is at `{relation_text}` (also `{database}`, `{schema}` and, as texts, `{database_text}`,
    `{schema_text}` and `{name_text}`): (kind, definition, options), of which kind is 'view' where one can be replaced;
    no row where nothing is there. `views`: the query for (schema, name, definition) of the views that may read that
    table; a definition of NULL where it certainly does. `replace_view`: what lets a `{view}` that is there read
    `{query}` and keeps its grants, its `{options}` written as it has them. `view_rolls_back`: whether that may stand in
    a transaction and is undone with it; `ddl_patience`: what makes the statements of a transaction wait no longer than
    `{milliseconds}` for a lock, where whoever waits for one keeps readers waiting behind. `view_risk`: what replacing
    loses, in a sentence. `view_rights`: the query for what is missing, (which, whose): 'owner', 'schema', 'select' or
    'reader' (see `cutover/views.py`), for `{view_text}` to read `{table_text}`; `row_policies`: the query for all that
    decides who sees which rows of `{relation_text}`. Both None where there is no such thing, or nobody can ask.
    `claims_meet_late`: whether two claims of one slice are both granted, and the second to commit is refused.
    Of a `Replacing` session: `replace`, the one statement that replaces the rows of `{table}` where `{condition}` by
    those of `{query}`, which has the table's columns in the table's order, and `replace_all`, the same of all rows;
    `as_of`, how `{table}` as it was in `{version}` is named behind FROM.
    What tells whether two rows are the same: `exact_text`, the text `{column}` equal to no other one, whatever its
    collation says, and `shown_text`, the text of such a `{value}`. `wide`, by family of types (integer, decimal,
    float), the type that holds the values of all of them; `{scale}` is that of decimals of up to 38 digits.
    `canonical`, by family, the one text of a value `{column}` that every engine gives: what it lacks cannot be compared
    with another engine. `families`: what a type of this engine is whose name means something else to others. `joint`: what stands between two texts to join them. `trim_end`: the text `{text}` without the
    letter `{letter}` at its end, `trim_blanks` without blanks there. `text_number`: 60 bits of the MD5 of the UTF-8 text `{text}`, as a number.
    `mixed`: the number `{hash}` stirred, where `row_hash` only lays hashes over each other. `row_text_hash`: a number of
    64 bits for the text `{text}`, where `column_hash` gives some values the hash of others (5 and -5, NULL and 0); empty
    where it does not. `hash_of_long`: how a number of more than 18 digits, `{column}`, enters `row_hash`. `modulo`: the rest of
    `{number}` divided by `{by}`. `tried`: `{value}`, or `{otherwise}` where numbers became too large for their
    type on the way.
    """

    dialect: str
    literals: Mapping[SliceKind, str]
    row_hash: str
    column_hash: Mapping[str, str]
    hash_joint: str
    hash_sum: str
    try_cast: str
    case_sensitive: bool
    longest_name: int
    forbidden: str = ""
    default_schema: str = "public"
    log_column: str = "{type}"
    log_field: str | None = None
    count_rows_apart: str = "count(DISTINCT row({columns}))"
    epoch_seconds: str = "extract(epoch FROM {column})"
    in_steps: str = "floor({seconds} / {step})"
    day_of_instant: str | None = "CAST({column} AT TIME ZONE {zone} AS DATE)"
    index: str | None = None
    identity: str | None = None
    computed: str | None = None
    who_am_i: str | None = None
    limits: str | None = None
    slow: str | None = None
    grants: Mapping[str, str] = field(default_factory=dict[str, str])
    grants_to_text: bool = False
    claims_are_rows: bool = False
    ddl_rolls_back: bool = False
    drop_table: str = "DROP TABLE IF EXISTS {name}"
    claims_meet_late: bool = False
    view: str = (
        "SELECT lower(t.table_type), v.view_definition, '' FROM {database}.information_schema.tables AS t"
        " LEFT JOIN {database}.information_schema.views AS v"
        " ON v.table_schema = t.table_schema AND v.table_name = t.table_name"
        " WHERE t.table_schema = {schema_text} AND t.table_name = {name_text}"
    )
    views: str = (
        "SELECT table_schema, table_name, view_definition FROM {database}.information_schema.views"
        " WHERE view_definition IS NULL OR lower(view_definition) LIKE concat('%', lower({name_text}), '%')"
    )
    replace_view: str = "CREATE OR REPLACE VIEW {view} AS {query}"
    view_rolls_back: bool = False
    ddl_patience: str | None = None
    view_risk: str = ""
    view_rights: str | None = None
    row_policies: str | None = None
    replace: str = ""
    replace_all: str = ""
    as_of: str = ""
    asks_for_partitions: bool = False
    folds_upper: bool = False
    scale_0_is_whole: bool = False
    text_type: str = "TEXT"
    log_types: Mapping[str, str] = field(default_factory=dict[str, str])
    text: str = "{literal}"
    same_text: str = "{column} = {value}"
    differs: str = "{a} IS DISTINCT FROM {b}"
    text_differs: str = "{a} IS DISTINCT FROM {b}"
    first: str = "SELECT {distinct}{rest} LIMIT {count}"
    create_schema: str = "CREATE SCHEMA IF NOT EXISTS {name}"
    create_table: str = "CREATE TABLE IF NOT EXISTS {name} ({columns})"
    add_column: str = "ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {name} {type}"
    one_value: str = "AS {name}"
    one_row: str = "VALUES ({values})"
    sum: str = "sum({column})"
    group_by_place: bool = True
    nested_ctes: bool = True
    flat_cases: bool = False
    key_parts: Mapping[str, str] = field(default_factory=lambda: {"": "{column}"})
    key_joint: str = ", "
    instants_are_utc: bool = False
    exact_text: str = "{column}"
    shown_text: str = "{value}"
    wide: Mapping[str, str] = field(
        default_factory=lambda: {
            "integer": "BIGINT",
            "decimal": "DECIMAL(38, {scale})",
            "float": "DOUBLE",
        }
    )
    canonical: Mapping[str, str] = field(default_factory=dict[str, str])
    families: Mapping[str, str] = field(default_factory=dict[str, str])
    joint: str = " || "
    trim_end: str = "rtrim({text}, {letter})"
    trim_blanks: str = "rtrim({text}, ' ')"
    text_number: str = ""
    mixed: str = "{hash}"
    row_text_hash: str = ""
    hash_of_long: str = "{column}"
    modulo: str = "({number} % {by})"
    tried: str = "coalesce({value}, {otherwise})"


@dataclass(frozen=True)
class Claim:
    """What one writer asks to have for itself: the UTC `days` of a table that its window touches.

    `relation` is the table's SQL name. `days` is None for the whole table: such a writer is alone, while
    writers of different days are not in each other's way. `label` names the slice and `holder` the run
    that asks, for the message that the other writer gets; `backfill` is the backfill that the run belongs to.
    """

    relation: str
    days: tuple[date, ...] | None
    label: str
    holder: str
    backfill: str | None = None


class Session(Protocol):
    """One open connection. Its clock and its rendering of time are UTC, whatever the server's settings."""

    @property
    def spelling(self) -> Spelling: ...

    @property
    def database(self) -> str:
        """What the warehouse calls the database that is open: with it or without, a table's name means the same."""
        ...

    def execute(self, sql: str) -> int:
        """Run one statement and return the number of rows it touched (-1 where none is told)."""
        ...

    def define(self, *statements: str) -> None:
        """Run DDL of the `IF NOT EXISTS` kind outside a transaction; losing a race to its twin is no error."""
        ...

    def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a query and return its rows."""
        ...

    def fetch_arrow(self, sql: str) -> pa.Table:
        """Run a query and return its result; timestamps with a zone come in UTC."""
        ...

    def columns_of(self, relation: str) -> dict[str, str] | None:
        """Return name and type (in the engine's spelling) of each column; None when it is not there."""
        ...

    def stage_arrow(self, name: str, data: pa.Table) -> str:
        """Put rows where only this session sees them, and return the relation's SQL name."""
        ...

    def stage_select(self, name: str, sql: str) -> str:
        """Put a query's rows where only this session sees them, and return the relation's SQL name."""
        ...

    def drop_stage(self, name: str) -> None:
        """Remove a stage; one that is not there is no error. A dead session leaves none behind."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """All or nothing: COMMIT at the end, ROLLBACK on any error, also on one that was swallowed inside."""
        ...

    def prepare(self, claim: Claim) -> None:
        """Hear before anything is staged what will be claimed: for what a transaction needs and cannot make itself."""
        ...

    def claim(self, claim: Claim) -> None:
        """Be the only writer of `claim` until the transaction ends; wait, then raise `SliceBusy`."""
        ...

    def may_cost(self, most: float | None) -> None:
        """Let no single statement cost more than `most`, in the engine's unit, where it can cap that; None lifts it."""
        ...

    def cost(self, seconds: float) -> float | None:
        """Return what `seconds` of work cost, in the engine's unit; None where it cannot tell."""
        ...

    def clock(self) -> datetime:
        """Return the warehouse's own time, aware, UTC."""
        ...

    def breathe(self) -> None:
        """Between two slices: let a waiting writer in, where holding the connection keeps it out."""
        ...


class Replacing(Session, Protocol):
    """A session of a warehouse that has no transaction over several statements, and one that replaces a slice.

    Its `transaction` raises. `writing/replacing.py` writes slices there.
    """

    @property
    def lease_seconds(self) -> float:
        """How long a claim outlives a holder that says nothing any more."""
        ...

    def hold(self, claim: Claim, *, wait: bool = True) -> AbstractContextManager[None]:
        """Be the only writer of `claim` until the end of the body; wait, then raise `SliceBusy`."""
        ...

    def still_holds(self, claim: Claim) -> None:
        """Raise `SliceBusy` unless enough of the claim's lease is left to begin what must not be done twice."""
        ...

    def version_of(self, relation: str) -> str:
        """Return what names the table as it is now, for `Spelling.as_of`."""
        ...


def replacing(session: Session) -> Replacing | None:
    """Return the session where one statement replaces a slice there; None where a transaction does."""
    return cast("Replacing", session) if session.spelling.replace else None


@runtime_checkable
class Estimating(Protocol):
    """A session whose warehouse tells beforehand what a query would read."""

    def bytes_of(self, sql: str) -> int | None:
        """Return the bytes that would be read and billed, running nothing; None where that is not told."""
        ...


@runtime_checkable
class Attributing(Protocol):
    """A session whose warehouse tells afterwards what a backfill's statements cost."""

    def attributed(self, backfill: str) -> float | None:
        """Return that cost in the engine's unit; None where it is not told, or not yet."""
        ...


class Engine(Protocol):
    """A warehouse by URL. Making one connects to nothing and imports no driver."""

    @property
    def spelling(self) -> Spelling: ...

    @property
    def shown(self) -> str:
        """The URL without secrets, for logs and metadata."""
        ...

    @property
    def place(self) -> str:
        """What the URL says that only one warehouse can be: the file, or the database's name."""
        ...

    @property
    def address(self) -> str:
        """Where the warehouse is reached; two of them may lead to one."""
        ...

    def limited(
        self, *, lock_wait: float | None = None, statement_timeout: float | None = None
    ) -> Engine:
        """Return the same warehouse with other limits, in seconds; None keeps the one that it has."""
        ...

    def session(
        self, *, who: str = "", read_only: bool = False, report: Report | None = None
    ) -> AbstractContextManager[Session]:
        """Open a session for `who`; waiting for the warehouse is bounded and told through `report`."""
        ...
