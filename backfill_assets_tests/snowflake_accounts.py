"""A Snowflake account for the tests: fakesnow, corrected where it says things otherwise than the service does.

Two of its ways matter to a writer. A conflict of two writers leaves it as DuckDB's own exception (in the server as HTTP
500, which the connector repeats until `network_timeout`), where the service lets the second one wait and then gives
error 625: it is given at once here, and the engine asks again. And values that a cast refuses have other numbers.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from backfill_assets.engines import Session
from backfill_assets_tests.warehouses import Warehouse

_conflicts: list[str] = []


def correct() -> None:
    """Let fakesnow's cursors raise what the service would; once a process."""
    import duckdb
    import snowflake.connector as connector
    from fakesnow.cursor import FakeSnowflakeCursor

    logging.getLogger("sqlglot").setLevel(
        logging.ERROR
    )  # it names every property that DuckDB lacks
    execute = FakeSnowflakeCursor.execute
    if hasattr(execute, "__wrapped__"):
        return

    @functools.wraps(execute)
    def corrected(self: Any, command: str, *arguments: Any, **named: Any) -> Any:
        try:
            done = execute(self, command, *arguments, **named)
            if command.startswith(
                "BEGIN"
            ):  # the server describes the last statement, and cannot this one
                self._last_sql = "SELECT 'Statement executed successfully.' AS status"
            return done
        except (duckdb.TransactionException, duckdb.ConstraintException) as error:
            # what fakesnow keeps of tables in tables of its own is a conflict of nobody's rows
            if isinstance(error, duckdb.ConstraintException) and '"ext_' not in str(error):
                raise connector.errors.ProgrammingError(
                    msg=str(error).split("\n")[0], errno=100072, sqlstate="22000"
                ) from error
            if "is aborted" in str(error):  # the service would go on, and so would a commit
                raise connector.errors.ProgrammingError(
                    msg="the transaction was aborted", errno=90064, sqlstate="55000"
                ) from error
            _conflicts.append(command)
            raise connector.errors.ProgrammingError(
                msg="Statement has locked table in a transaction and this lock has not yet been released",
                errno=625,
                sqlstate="57014",
            ) from error
        except (duckdb.InvalidInputException, duckdb.IOException) as error:
            # DuckDB looks among Python's variables and among files for a table that is not there
            if "replacement scan" in str(error) or "No files found" in str(error):
                raise connector.errors.ProgrammingError(
                    msg="Object does not exist or not authorized", errno=2003, sqlstate="42S02"
                ) from error
            raise connector.errors.ProgrammingError(
                msg=str(error).split("\n")[0], errno=100038, sqlstate="22018"
            ) from error
        except duckdb.OutOfRangeException as error:
            raise connector.errors.ProgrammingError(
                msg=str(error).split("\n")[0], errno=100039, sqlstate="22003"
            ) from error
        except duckdb.Error as error:
            raise connector.errors.ProgrammingError(
                msg=str(error), errno=1003, sqlstate="42000"
            ) from error

    FakeSnowflakeCursor.execute = corrected  # type: ignore[method-assign]
    FakeSnowflakeCursor.fetchall = _all_columns  # type: ignore[method-assign]
    transform = FakeSnowflakeCursor._transform

    def transformed_once(self: Any, expression: Any, params: Any) -> Any:
        tree = expression.copy().transform(_hexadecimal, copy=False)
        return transform(self, _Tree(tree), params).tree  # type: ignore[arg-type]

    FakeSnowflakeCursor._transform = transformed_once  # type: ignore[method-assign]
    describe = FakeSnowflakeCursor._describe_only

    def described(self: Any, command: str) -> Any:
        # the server answers HTTP 500 where this fails; told that it cannot, it runs the query, and says why that fails
        with contextlib.suppress(connector.errors.ProgrammingError):
            return describe(self, command)

    FakeSnowflakeCursor._describe_only = described  # type: ignore[method-assign]


def _hexadecimal(node: Any) -> Any:
    """Return how DuckDB reads the digits of TO_NUMBER(..., 'XXX'), which fakesnow does not know."""
    from sqlglot import exp

    shape = node.args.get("format") if isinstance(node, exp.ToNumber) else None
    if shape is None or not shape.is_string or set(shape.name) != {"X"}:
        return node
    digits = exp.DPipe(this=exp.Literal.string("0x"), expression=node.this)
    return exp.cast(digits, "BIGINT")


class _Tree:
    """A statement that is copied once, where fakesnow copies it for each of its seventy changes."""

    def __init__(self, tree: Any) -> None:
        self.tree = tree

    def transform(self, change: Any, **named: Any) -> _Tree:
        self.tree = self.tree.transform(change, copy=False, **named)
        return self


def _all_columns(cursor: Any) -> list[tuple[Any, ...]]:
    """Return every column of the result, also where two have one name."""
    table = cursor._arrow_table
    if table is None:
        raise TypeError("No open result set")
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


@contextlib.contextmanager
def account_in_this_process() -> Iterator[None]:
    """Lead every connection of this process to an account of its own that is empty."""
    import fakesnow
    import snowflake.connector

    correct()
    with fakesnow.patch():
        # two first connections at once would both make the database
        snowflake.connector.connect(database="WAREHOUSE", schema="PUBLIC").close()
        yield


@dataclass(frozen=True)
class SnowflakeWarehouse(Warehouse):
    """A database of an account that fakesnow plays."""

    conflicts_before: int = field(default_factory=lambda: len(_conflicts))

    @property
    def keeps(self) -> frozenset[str]:
        # each whole number is NUMBER(38, 0), and each float has 64 bits
        return frozenset({"SMALLINT", "REAL"})

    @property
    def any_schema(self) -> bool:
        return False  # fakesnow puts them between quotes as they are

    def seen_from_outside(self, session: Session, sql: str) -> list[tuple[Any, ...]]:
        return self.rows(sql)

    def somebody_waits(self) -> bool:
        return len(_conflicts) > self.conflicts_before

    def leftovers(self) -> list[str]:
        found = self.rows(
            "SELECT table_schema, table_name FROM information_schema.tables"
            " WHERE table_name LIKE 'BACKFILL_STAGE%'"
        )
        return [".".join(map(str, stage)) for stage in found]
