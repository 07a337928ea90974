"""What PostgreSQL's SQLSTATEs mean to somebody who rewrites slices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.engines.wording import AS_IT_WAS, Rule, shortened
from backfill_assets.errors import (
    Away,
    BackfillError,
    BadRows,
    DeclarationError,
    HiddenRows,
    LimitReached,
    MissingRight,
    MissingTable,
    SchemaMismatch,
    SliceBusy,
    Unreachable,
    WriteFailed,
)

if TYPE_CHECKING:
    import psycopg

# what a server says who will say it again; before a session there is no SQLSTATE to tell by
_FINAL = (
    "authentication failed",
    "does not exist",
    "pg_hba",
    "no password supplied",
    "could not translate host",
)

_GONE = (
    Away,
    "the database cannot be reached",
    "Check that the server is up, then launch this again",
)
_REFUSED = (
    Unreachable,
    "the database lets nobody in like this",
    "Correct user, password or database in the warehouse URL",
)
_ABSENT = (
    MissingTable,
    "a statement names something that is not there",
    "Load the table or correct the name, then launch this again",
)
_LOCKED = (
    SliceBusy,
    f"another session holds what this one needs{AS_IT_WAS}",
    "Let that session finish, then launch this partition again",
)
_UNFIT = (
    SchemaMismatch,
    f"a value does not fit its column{AS_IT_WAS}",
    "Correct the value or change the column's type",
)
# the longest beginning of the SQLSTATE that is listed decides
_RULES: dict[str, Rule] = {
    "": (
        WriteFailed,
        f"the database refused a statement{AS_IT_WAS}",
        "Correct what it names, then launch this again",
    ),
    "08": _GONE,
    "22": _UNFIT,
    "22021": (
        SchemaMismatch,
        f"a text holds a character that the database cannot store{AS_IT_WAS}",
        "Remove NUL characters (and those that the database's encoding lacks) in the transform",
    ),
    "23": (
        BadRows,
        f"the rows break a constraint of the table{AS_IT_WAS}",
        "Correct the rows or the constraint",
    ),
    "25006": (
        MissingRight,
        f"the database takes no writes from this session{AS_IT_WAS}",
        "Use the primary server, or a role that may write",
    ),
    "28": _REFUSED,
    "428C9": (
        SchemaMismatch,
        f"the table computes a column itself, and the rows bring values for it{AS_IT_WAS}",
        "Leave that column out in the transform",
    ),
    "3D000": _REFUSED,
    "3F000": _ABSENT,
    "40001": _LOCKED,
    "40P01": _LOCKED,
    "42501": (
        MissingRight,
        f"the role may not do what was asked{AS_IT_WAS}",
        "Grant the right (on data and audit tables SELECT, INSERT and DELETE; on the database TEMPORARY)",
    ),
    "42703": _ABSENT,
    "42704": _ABSENT,
    "42804": _UNFIT,
    "42846": _UNFIT,
    "42P01": _ABSENT,
    "53100": (
        WriteFailed,
        f"the database could not write{AS_IT_WAS}",
        "Its disk is full: free some space, then launch this partition again",
    ),
    "53300": _GONE,
    "55P03": _LOCKED,
    "57014": (
        LimitReached,
        f"a statement was stopped{AS_IT_WAS}",
        "Raise statement_timeout (in the warehouse URL, or the role's own), or ask who cancelled it",
    ),
    "57P": _GONE,
}


# SQLSTATEs that say too little, by the function of the server that raised them (its words are translated)
_BY_SOURCE: dict[tuple[str, str], Rule] = {
    ("23514", "ExecFindPartition"): (
        BadRows,
        f"the table has no partition for some of the rows{AS_IT_WAS}",
        "Create that partition, or a default one (CREATE TABLE ... PARTITION OF ... DEFAULT), then launch this again",
    ),
    ("42501", "check_enable_rls"): (
        HiddenRows,
        f"a policy may hide rows from the role, and what it does not see it cannot replace{AS_IT_WAS}",
        "Let somebody with the right run ALTER ROLE ... BYPASSRLS for the role that writes, or write as the table's owner",
    ),
}


def told(error: psycopg.Error) -> BackfillError:
    """Say an error of an open connection as a sentence of ours."""
    import psycopg

    if error.sqlstate is None:
        lost = isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError))
        kind, what, do = (
            _GONE if lost else _UNFIT if isinstance(error, psycopg.DataError) else _RULES[""]
        )
    else:
        special = _BY_SOURCE.get((error.sqlstate, error.diag.source_function or ""))
        kind, what, do = (
            special
            or _RULES[next(p for n in range(5, -1, -1) if (p := error.sqlstate[:n]) in _RULES)]
        )
    return kind(what, _said(error), do)


def unreachable(error: psycopg.Error, shown: str) -> BackfillError:
    """Say why there is no connection to the warehouse at URL `shown` (without its secrets)."""
    import psycopg

    # the URL itself; its text could show a piece of a password
    if isinstance(error, psycopg.ProgrammingError):
        return DeclarationError(
            "the warehouse URL cannot be used",
            "PostgreSQL's client cannot read it",
            "Write postgresql://user:password@host:5432/database?option=value, with libpq's option names and"
            " special characters percent-encoded",
        )
    said = str(error)
    final = error.sqlstate is not None and error.sqlstate[:2] in ("28", "3D")
    final = final or any(word in said for word in _FINAL)
    return (Unreachable if final else Away)(
        f"the warehouse {shown} cannot be reached",
        _said(error),
        "Check host, port, database, user and password in its URL, and that the server is up",
    )


def lost_race() -> tuple[type[psycopg.Error], ...]:
    """Return the errors of `CREATE ... IF NOT EXISTS` that its twin won; a table has no unique rows to break."""
    from psycopg import errors

    return (
        errors.UniqueViolation,
        errors.DuplicateTable,
        errors.DuplicateSchema,
        errors.DuplicateColumn,
        errors.DuplicateObject,
    )


def _said(error: psycopg.Error) -> str:
    """Return the server's words, or the driver's: on one line, of bearable length."""
    primary, detail = error.diag.message_primary, error.diag.message_detail
    said = f"{primary} ({detail})" if primary and detail else primary or str(error)
    return shortened(said)
