"""BigQuery by URL, and how it spells what engines spell differently. What a session does is `bigquery_session.py`'s.

A slice is replaced in one multi-statement transaction, carried by a BigQuery session; rows come by load jobs into a
table of their own, which expires by itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote, urlsplit

from backfill_assets.engines.bigquery_jobs import Limits
from backfill_assets.engines.limited import Limited
from backfill_assets.engines.protocol import Report, Spelling, silence
from backfill_assets.engines.texts import unpadded
from backfill_assets.engines.transactions import opened
from backfill_assets.errors import DeclarationError, without_secrets

if TYPE_CHECKING:
    from backfill_assets.engines.bigquery_session import BigQuerySession

SPELLING = Spelling(
    dialect="bigquery",
    literals={
        "date": "DATE '{}'",
        "timestamp": "DATETIME '{}'",
        "timestamptz": "TIMESTAMP '{}'",
        "int_yyyymmdd": "{}",
        "iso_text": "'{}'",
    },
    row_hash="FARM_FINGERPRINT(CONCAT({columns}))",
    # JSON quotes texts, so that no two rows are spelled alike
    column_hash={
        "": "coalesce(TO_JSON_STRING({column}), 'null')",
        # of whatever scale the column is, a number is spelled alike
        "numeric": "coalesce(TO_JSON_STRING(SAFE_CAST({column} AS NUMERIC(38,9))), 'null')",
    },
    hash_joint=", ',', ",
    # a sum of fingerprints leaves INT64 after a few rows
    hash_sum="CAST(coalesce(sum(CAST({hash} AS BIGNUMERIC)), 0) AS STRING)",
    try_cast="SAFE_CAST({value} AS {type})",
    claims_are_rows=True,
    asks_for_partitions=True,
    case_sensitive=False,
    longest_name=300,
    forbidden='!"$()*,./;?@[\\]^`{}~',
    epoch_seconds="UNIX_MICROS(CAST({column} AS TIMESTAMP)) / 1000000",
    day_of_instant="DATE({column}, {zone})",
    # as GRANT names it; keys and workloads are service accounts
    who_am_i="SELECT CONCAT(CASE WHEN SESSION_USER() LIKE '%gserviceaccount.com' THEN 'serviceAccount:' ELSE 'user:' END,"
    " SESSION_USER())",
    grants={
        "rows": "GRANT `roles/bigquery.dataEditor` ON TABLE {table} TO {role}",
        "read": "GRANT `roles/bigquery.dataViewer` ON TABLE {table} TO {role}",
        "make": "GRANT `roles/bigquery.dataEditor` ON SCHEMA {database}.{schema} TO {role}",
    },
    grants_to_text=True,
    count_rows_apart="count(DISTINCT TO_JSON_STRING([{columns}]))",
    wide={"integer": "INT64", "decimal": "BIGNUMERIC", "float": "FLOAT64"},
    canonical={
        "integer": "CAST({column} AS STRING)",
        "decimal": unpadded("CAST({column} AS STRING)"),
        "float": "CASE WHEN IS_INF({column}) THEN CASE WHEN {column} > 0 THEN 'Infinity' ELSE '-Infinity' END"
        " WHEN IS_NAN({column}) THEN 'NaN' ELSE CAST({column} AS STRING) END",
        "text": "{column}",
        "date": "CAST({column} AS STRING)",
        "timestamp": unpadded("CAST({column} AS STRING)"),
        "timestamptz": unpadded("CAST(DATETIME({column}, 'UTC') AS STRING)"),
        "boolean": "CAST({column} AS STRING)",
        "binary": "TO_HEX({column})",
    },
    text_number="CAST(CONCAT('0x', SUBSTR(TO_HEX(MD5({text})), 1, 15)) AS INT64)",
    modulo="MOD({number}, {by})",
    # minus nothing is nothing, as it is for GROUP BY; texts stand in quotation marks there
    key_parts={"": r"REGEXP_REPLACE(TO_JSON_STRING({column}), r'^-(0(\.0)?)$', r'\1')"},
    # each dataset has an information schema of its own
    view=(
        "SELECT CASE t.table_type WHEN 'VIEW' THEN 'view' ELSE lower(t.table_type) END, v.view_definition, ''"
        " FROM {database}.{schema}.INFORMATION_SCHEMA.TABLES AS t"
        " LEFT JOIN {database}.{schema}.INFORMATION_SCHEMA.VIEWS AS v ON v.table_name = t.table_name"
        " WHERE t.table_name = {name_text}"
    ),
    views=(
        "SELECT table_schema, table_name, view_definition FROM {database}.{schema}.INFORMATION_SCHEMA.VIEWS"
        " WHERE view_definition IS NULL OR lower(view_definition) LIKE concat('%', lower({name_text}), '%')"
    ),
    view_risk="its description, its labels and those of its columns are lost: set them again",
)
_OPTIONS = {
    "location": None,
    "lock_wait": "600",
    "statement_timeout": None,
    "credentials_path": None,
    "maximum_bytes_billed": None,
    "endpoint": None,
    "stage_dataset": None,
    "billing_project": None,
    "reservation": None,
}
_CLOUD = "https://bigquery.googleapis.com"
_EXAMPLE = "bigquery://project/dataset?location=EU"


class BigQueryEngine(Limited):
    """`bigquery://project/dataset?location=EU&lock_wait=600&statement_timeout=3600&maximum_bytes_billed=1000000000`.

    The dataset is where tables are whose names give none. `lock_wait` and `statement_timeout` are in seconds;
    `maximum_bytes_billed` stops any single statement that would read more. `credentials_path` names a file of
    credentials; without it the environment's are taken. Jobs are carried out and paid by `billing_project` (default:
    the project) and by `reservation` where one is named. Stages lie in `stage_dataset` (default: the dataset).
    `endpoint` leads to an emulator, where nobody has credentials.
    """

    def __init__(self, url: str) -> None:
        self.shown = without_secrets(url)
        parts = urlsplit(url.strip())
        self.project, self.dataset = unquote(parts.netloc), unquote(parts.path[1:])
        given = dict(parse_qsl(parts.query, keep_blank_values=True))
        self._refuse_what_is_no_place(given)
        options = {**_OPTIONS, **given}
        self.location = options["location"]
        self.credentials_path = options["credentials_path"]
        self.endpoint = options["endpoint"]
        self.stage_dataset = options["stage_dataset"] or self.dataset
        self.billing_project = options["billing_project"] or self.project
        wait = self._number("lock_wait", options["lock_wait"], "seconds")
        self.wait_seconds = 0.0 if wait is None else wait
        billed = self._number("maximum_bytes_billed", options["maximum_bytes_billed"], "bytes")
        self.limits = Limits(
            self._number("statement_timeout", options["statement_timeout"], "seconds") or None,
            None if billed is None else int(billed),
            options["reservation"],
        )
        stages = "GRANT `roles/bigquery.dataEditor` ON SCHEMA `{}`.`{}` TO {{role}}"
        self.spelling = replace(
            SPELLING,
            default_schema=self.dataset,
            grants={**SPELLING.grants, "stage": stages.format(self.project, self.stage_dataset)},
        )

    def _refuse_what_is_no_place(self, options: dict[str, str]) -> None:
        why = None
        unknown = sorted(set(options) - set(_OPTIONS))
        if not self.project or "@" in self.project or ":" in self.project:
            why = "it names no project, or names one with a user, a password or a port"
        elif not self.dataset or "/" in self.dataset:
            why = "it does not name one dataset, where tables are whose names give none"
        elif unknown:
            why = f"the option {unknown[0]!r} is not known; there are {', '.join(_OPTIONS)}"
        if why is not None:
            raise DeclarationError(
                f"the warehouse URL {self.shown!r} cannot be used",
                why,
                f"Write for example {_EXAMPLE}",
            )

    def _number(self, name: str, value: str | None, unit: str) -> float | None:
        if value is None:
            return None
        with contextlib.suppress(ValueError):
            if 0 <= (number := float(value)) < 1e18:
                return number
        raise DeclarationError(
            f"the warehouse URL {self.shown!r} cannot be used",
            f"{name}={value!r} is no number of {unit}",
            f"Write for example {name}=600",
        )

    @property
    def place(self) -> str:
        """Project and dataset: where tables are, whoever pays for the jobs."""
        return f"{self.project}.{self.dataset}"

    @property
    def address(self) -> str:
        """The API that is spoken to."""
        return (self.endpoint or _CLOUD).rstrip("/")

    def _limit(self, limits: Mapping[str, float]) -> None:
        self.wait_seconds = limits.get("wait_seconds", self.wait_seconds)
        if "statement_limit" in limits:
            self.limits = replace(self.limits, seconds=limits["statement_limit"] or None)

    def session(
        self, *, who: str = "", read_only: bool = False, report: Report | None = None
    ) -> AbstractContextManager[BigQuerySession]:
        """Open a session; what was not committed by its end is rolled back."""
        from backfill_assets.engines.bigquery_session import BigQuerySession

        return opened(BigQuerySession(self, who, read_only, report or silence))

    def client(self, bigquery: Any) -> Any:
        """Return a client of the driver `bigquery`, with the credentials that the URL or the environment names."""
        import google.auth as untyped
        from google.auth.credentials import AnonymousCredentials

        auth: Any = untyped
        credentials: Any = None
        if self.credentials_path:
            credentials = auth.load_credentials_from_file(
                self.credentials_path, scopes=["https://www.googleapis.com/auth/bigquery"]
            )[0]
        elif self.endpoint:
            credentials = AnonymousCredentials()
        options = {"api_endpoint": self.endpoint} if self.endpoint else None
        return bigquery.Client(
            project=self.billing_project,
            credentials=credentials,
            location=self.location,
            client_options=options,
        )
