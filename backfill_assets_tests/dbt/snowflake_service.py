"""dbt in this process against a Snowflake account that fakesnow plays, with the service's habits that fakesnow lacks.

Played here: parameters of the session, `CURRENT_TRANSACTION()`, blocks of Snowflake Scripting (their statements are run
one by one), a failed statement that leaves the transaction open, and DDL that commits it. Every statement is noted, with
those of a block in the order in which they ran.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import snowflake.connector as connector

from backfill_assets_tests.dbt.projects import Project
from backfill_assets_tests.snowflake_accounts import SnowflakeWarehouse, account_in_this_process

URL = "snowflake://ana:s3cret@fake/warehouse?warehouse=WH&role=WRITER"
DDL = ("CREATE", "ALTER", "DROP", "TRUNCATE", "COMMENT")
_BLOCK = re.compile(
    r"^(?:DECLARE told VARCHAR;\n)?BEGIN\n(?P<body>.*);\nRETURN 'done\|' \|\| (?P<given>.*);\n"
    r"EXCEPTION WHEN OTHER THEN\nRETURN 'failed\|' \|\| SQLCODE \|\| '\|' \|\| SQLERRM;\nEND;$",
    re.S,
)


@dataclass(frozen=True)
class Sent:
    """A statement, the session that sent it, and the parameters that the session had then."""

    sql: str
    session: int
    parameters: dict[str, str]
    in_transaction: bool

    @property
    def word(self) -> str:
        return self.sql.split(None, 1)[0]


@dataclass
class Service:
    """What was sent, what is to fail (by the beginning of a statement), and what happens right before one."""

    sent: list[Sent] = field(default_factory=list)
    failing: dict[str, Exception] = field(default_factory=dict)
    lost: dict[str, Exception] = field(default_factory=dict)
    before: dict[str, Any] = field(default_factory=dict)
    tag: str = ""
    sessions: list[_Session] = field(default_factory=list)

    def connect(self, **arguments: Any) -> Any:
        connection = self._connect(**arguments)
        session = _Session(self, len(self.sessions))
        self.sessions.append(session)
        real = connection.cursor

        def cursor(*given: Any, **named: Any) -> Any:
            found = real(*given, **named)
            execute = found.execute
            found.execute = lambda sql, *rest, **more: session.execute(found, execute, sql)
            return found

        connection.cursor = cursor
        return connection

    def __post_init__(self) -> None:
        self._connect = connector.connect

    @property
    def statements(self) -> list[str]:
        return [one.sql for one in self.sent]


class _Session:
    def __init__(self, service: Service, number: int) -> None:
        self.service, self.number = service, number
        self.parameters: dict[str, str] = {"QUERY_TAG": service.tag} if service.tag else {}
        self.transaction: str | None = None

    def execute(self, cursor: Any, execute: Any, sql: str) -> Any:
        sql = re.sub(r"\n/\* \{.*?\} \*/;?$", "", sql.strip(), flags=re.S).strip().rstrip(";")
        if not sql.startswith("EXECUTE IMMEDIATE '"):
            return self._run(execute, sql)
        text = sql[len("EXECUTE IMMEDIATE '") : -1]
        block = _BLOCK.match(re.sub(r"\\(.)", r"\1", text.replace("''", "'")))
        assert block is not None, text
        try:
            told = self._play(cursor, execute, block["body"], block["given"])
        except connector.errors.ProgrammingError as error:
            # its text between quotes is the account's affair
            words = str(error.raw_msg or error.msg).replace("'", "''")
            told = f"failed|{error.errno}|{words}"
        answer = f"SELECT '{told}' AS \"anonymous block\""
        try:
            return execute(answer)
        except connector.errors.ProgrammingError:
            execute(
                "ROLLBACK"
            )  # a conflict ends DuckDB's transaction, where the service keeps its own open
            return execute(answer)

    def _play(self, cursor: Any, execute: Any, body: str, given: str) -> str:
        """Run the statements of a block, and return what it returns."""
        if " INTO :told" in body:
            self._run(execute, body.replace(" INTO :told", " AS told"))
            return "done|" + str(cursor.fetchall()[0][0]).replace("'", "''")
        assert given == "SQLROWCOUNT || '|' || COALESCE(CURRENT_TRANSACTION(), '')"
        rows = 0
        for statement in body.split(";\n"):
            self._run(execute, statement)
            rows = cursor.rowcount
        return f"done|{rows}|{self.transaction or ''}"

    def _run(self, execute: Any, sql: str) -> Any:
        service, word = self.service, sql.split(None, 1)[0]
        service.sent.append(
            Sent(sql, self.number, dict(self.parameters), self.transaction is not None)
        )
        for beginning, act in list(service.before.items()):
            if sql.startswith(beginning):
                del service.before[beginning]
                act()
        for beginning, error in service.failing.items():
            if sql.startswith(beginning):
                raise error  # and the transaction stays open, with what it has done so far
        if sql.startswith("ALTER SESSION"):
            return self._alter(execute, sql)
        if sql.startswith("SHOW PARAMETERS"):
            value = self.parameters.get("QUERY_TAG", "").replace("'", "''")
            return execute(f"SELECT 'QUERY_TAG' AS key, '{value}' AS value")
        if word in DDL and self.transaction is not None:
            execute("COMMIT")
            self.transaction = None
        shown = "NULL" if self.transaction is None else f"'{self.transaction}'"
        done = self._execute(execute, sql.replace("CURRENT_TRANSACTION()", shown))
        if word == "BEGIN" and self.transaction is None:
            self.transaction = f"{self.number}-{len(service.sent)}"
        elif word in ("COMMIT", "ROLLBACK"):
            self.transaction = None
        for beginning, error in service.lost.items():
            if sql.startswith(beginning):
                raise error  # it was done, and nobody was told
        return done

    def _execute(self, execute: Any, sql: str) -> Any:
        # a temporary table in a schema is more than fakesnow has; dbt drops those of its snapshots
        sql = re.sub(r"(?i)^create or replace temporary table", "create or replace table", sql)
        try:
            return execute(sql)
        except connector.errors.ProgrammingError as error:
            if sql.lower().startswith("describe table") and "does not exist" in str(error):
                raise connector.errors.ProgrammingError(
                    msg="Table does not exist or not authorized.", errno=2003, sqlstate="42S02"
                ) from error
            raise

    def _alter(self, execute: Any, sql: str) -> Any:
        act, _, told = sql.removeprefix("ALTER SESSION ").partition(" ")
        if act == "SET":
            for name, text, plain in re.findall(r"(\w+) = (?:'((?:[^']|'')*)'|(\w+))", told):
                self.parameters[name] = text.replace("''", "'").replace("\\\\", "\\") or plain
        else:
            for name in told.split(", "):
                self.parameters.pop(name, None)
        return execute("SELECT 'Statement executed successfully.' AS status")


@dataclass(frozen=True)
class Done:
    """How an invocation ended, and the messages of what did not succeed on one line."""

    success: bool
    words: str


def dbt(project: Project, *arguments: str, **variables: Any) -> Done:
    """Run dbt in this process, whose account it then meets."""
    from dbt.cli.main import dbtRunner

    with mock.patch.dict(os.environ, project.env):
        command = project.command(*arguments, "--quiet", variables=variables or None)[1:]
        done = dbtRunner().invoke(command)
    results = getattr(done.result, "results", None) or []
    said = [str(one.message) for one in results if str(one.status) not in ("success", "pass")]
    return Done(done.success, " ".join(" ".join([*said, str(done.exception or "")]).split()))


@contextmanager
def account() -> Iterator[tuple[Service, SnowflakeWarehouse]]:
    """Lead this process to an empty account whose statements are noted."""
    with account_in_this_process():
        service = Service()
        with mock.patch.object(connector, "connect", service.connect):
            yield service, SnowflakeWarehouse(URL)


def tag_of(sent: Sent) -> dict[str, str]:
    """Return what the account's history would keep of a statement."""
    return json.loads(sent.parameters.get("QUERY_TAG") or "{}")
