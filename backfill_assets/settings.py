"""Every environment variable that this code location reads: one name, one place, a type, a safe default, a sentence."""

from __future__ import annotations

import difflib
import json
import os
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from backfill_assets.errors import DeclarationError, without_secrets

PREFIX = "BACKFILL_"
# what dagster-k8s reads from the tag; it leaves out the rest without a word
_K8S_PARTS = (
    "container_config",
    "pod_spec_config",
    "pod_template_spec_metadata",
    "job_config",
    "job_metadata",
    "job_spec_config",
    "merge_behavior",
)


def _from_json(value: object) -> object:
    return json.loads(value) if isinstance(value, str) else value


class Settings(BaseModel):
    """Read once, when the location loads; each field is the variable of that name behind the prefix.

    What may hold a password or a token is not shown by `repr`, which tracebacks and logs use.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    warehouse_url: str = Field(
        repr=False,
        default="duckdb:///.demo/warehouse.duckdb",
        description="The warehouse that assets are written to; a relative file is looked for where the process runs.",
    )
    lane_warehouse_url: str | None = Field(
        repr=False,
        default=None,
        description="The same warehouse by another door, for the backfill lane: a role, warehouse or limits of its own.",
    )
    audit_schema: str = Field(
        default="backfill", min_length=1, description="The schema of the audit table load_audit."
    )
    events: str = Field(
        default=".demo/events",
        min_length=1,
        description="The folder of the events that the example of a replay reads.",
    )
    dagster_pg_url: str | None = Field(
        repr=False,
        default=None,
        description="PostgreSQL for Dagster's own runs and events; SQLite in DAGSTER_HOME without it.",
    )
    live_days: int = Field(
        default=3,
        ge=0,
        le=3650,
        description="A partition that ended more days ago than this is reprocessed in the backfill lane.",
    )
    require_reason: Literal["backfill", "always", "never"] = Field(
        default="backfill",
        description="Who must give a reason: backfills of slices that were loaded before, every run, or nobody.",
    )
    hold_seconds: float = Field(
        default=60,
        ge=0,
        le=86_400,
        description="How long a run that is under way waits at a slice for a pause to end, before it goes back to the queue.",
    )
    on_failure: Annotated[Literal["pause", "continue"] | int, Field(union_mode="left_to_right")] = (
        Field(
            default="pause",
            description="What the first failure does to its backfill: pause it, nothing (continue), or pause it after so many.",
        )
    )
    budget_seconds: float | None = Field(
        default=None, gt=0, description="Warehouse seconds that one backfill may spend."
    )
    budget_rows: int | None = Field(
        default=None, gt=0, description="Rows that one backfill may write."
    )
    budget_cost: float | None = Field(
        default=None,
        gt=0,
        description="What one backfill may cost, in the engine's unit, where the engine tells it.",
    )
    alerts: str = Field(
        repr=False,
        default="",
        description="Where alerts go: Apprise URLs (Slack, mail, PagerDuty, webhooks ...), separated by spaces.",
    )
    reports: str | None = Field(
        default=None,
        description="The folder of the reports of backfills; the folder reports of the instance's storage without it.",
    )
    lane_executor: Literal["in_process", "multiprocess", "celery"] = Field(
        default="in_process", description="How the steps of a backfill run are executed."
    )
    celery_broker: str | None = Field(
        repr=False,
        default=None,
        description="The Celery broker of the backfill lane, for lane_executor=celery.",
    )
    celery_backend: str | None = Field(
        repr=False, default=None, description="Where Celery keeps results; the broker, if left out."
    )
    celery_queue: str = Field(
        default="backfill", min_length=1, description="The Celery queue of the backfill lane."
    )
    lane_k8s_config: Annotated[dict[str, Any] | None, BeforeValidator(_from_json)] = Field(
        repr=False,
        default=None,
        description="JSON for the tag dagster-k8s/config of backfill runs: their node pool, limits and so on.",
    )

    @field_validator("warehouse_url", "lane_warehouse_url", "celery_broker")
    @classmethod
    def _has_a_scheme(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and "://" not in value:
            broker = info.field_name == "celery_broker"
            example = "redis://host:6379/0" if broker else "duckdb:///warehouse.duckdb"
            raise ValueError(f"is no URL; write for example {example}")
        return value

    @field_validator("lane_k8s_config")
    @classmethod
    def _is_known_to_kubernetes(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        unknown = sorted(set(value or {}) - set(_K8S_PARTS))
        if unknown:
            known = ", ".join(_K8S_PARTS)
            raise ValueError(
                f"has {unknown[0]!r}, which the tag does not know; choose from {known}"
            )
        return value

    @field_validator("on_failure")
    @classmethod
    def _after_some(cls, value: str | int) -> str | int:
        if isinstance(value, int) and value < 1:
            raise ValueError("should be pause, continue or a number of failures from 1 on")
        return value

    @property
    def alert_urls(self) -> list[str]:
        """The alert URLs one by one."""
        return self.alerts.split()


def variable(field: str) -> str:
    """Return the environment variable of a field of `Settings`."""
    return f"{PREFIX}{field.upper()}"


def is_set(field: str) -> bool:
    """Tell whether the variable of a field holds anything."""
    return bool(os.environ.get(variable(field), "").strip())


@lru_cache(maxsize=1)
def settings() -> Settings:
    """Return the settings as they were when this process first asked; see `read`."""
    return read()


def read() -> Settings:
    """Return the settings; raise one `DeclarationError` that lists everything that is wrong with them."""
    # pydantic-settings would do this too, as one more import that each run's process pays for
    given = {
        name: os.environ[variable(name)].strip()
        for name, field in Settings.model_fields.items()
        if variable(name) in os.environ and (is_set(name) or field.default is not None)
    }
    mistaken = [
        f"{name} is no setting; is {like[0]} meant?"
        for name in os.environ
        if name.startswith(PREFIX)
        and name not in map(variable, Settings.model_fields)
        and (like := difflib.get_close_matches(name, map(variable, Settings.model_fields), 1, 0.85))
    ]
    # a field that is wrong must not hide this one
    if given.get("lane_executor") == "celery" and not given.get("celery_broker"):
        needs = f"{variable('lane_executor')}=celery needs it"
        mistaken.append(f"{variable('celery_broker')} is not set, and {needs}")
    try:
        found = Settings.model_validate(given)
    except ValidationError as error:
        raise _wrong(mistaken + _told(error)) from None
    if mistaken:  # a variable would be left out, and a warehouse of one's own with it
        raise _wrong(mistaken)
    return found


def _told(error: ValidationError) -> list[str]:
    """Return what is wrong with each variable, without what it holds."""
    return [
        f"{variable('.'.join(map(str, problem['loc'][:1])))} {problem['msg'].removeprefix('Value error, ')}"
        for problem in error.errors(include_url=False, include_input=False)
    ]


def _wrong(problems: list[str]) -> DeclarationError:
    return DeclarationError(
        "the settings cannot be used",
        without_secrets("; ".join(dict.fromkeys(problems))),
        "Correct these environment variables and start again",
    )


def told_now(given: Any, what: str) -> Any:
    """Return a value, or what the environment variable of a `dagster.EnvVar` holds now; raise where it is not set."""
    if not hasattr(given, "get_value"):
        return given
    found = given.get_value()
    if found is None:
        raise DeclarationError(
            f"{what} is not known",
            f"the environment variable {given.env_var_name} is not set",
            "Set it where runs are executed",
        )
    return found
