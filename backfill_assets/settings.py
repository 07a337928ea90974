"""Every environment variable that this code location reads: one name, one place, a type, a safe default."""

from __future__ import annotations

import os
from functools import lru_cache

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from backfill_assets.errors import DeclarationError, without_secrets

PREFIX = "BACKFILL_"


class Settings(BaseModel):
    """Read once, when the location loads; each field is the variable of that name behind the prefix."""

    model_config = ConfigDict(frozen=True)

    warehouse_url: str = Field(
        default="duckdb:///.demo/warehouse.duckdb",
        description="The warehouse that assets are written to; a relative file is looked for where the process runs.",
    )
    audit_schema: str = Field(
        default="backfill", min_length=1, description="The schema of the audit table load_audit."
    )

    @field_validator("warehouse_url")
    @classmethod
    def _has_a_scheme(cls, value: str) -> str:
        if "://" not in value:
            raise ValueError("is no URL; write for example duckdb:///warehouse.duckdb")
        return value


@lru_cache(maxsize=1)
def settings() -> Settings:
    """Return the settings; raise one `DeclarationError` that lists everything that is wrong with them."""
    names = {name: f"{PREFIX}{name.upper()}" for name in Settings.model_fields}
    # pydantic-settings would do this too, as one more import that each run's process pays for
    given = {field: os.environ[name] for field, name in names.items() if name in os.environ}
    try:
        return Settings.model_validate(given)
    except ValidationError as error:
        problems = [
            f"{PREFIX}{'.'.join(map(str, problem['loc'])).upper()} {problem['msg'].removeprefix('Value error, ')}"
            for problem in error.errors(include_url=False, include_input=False)
        ]
        raise DeclarationError(
            "the settings cannot be used",
            without_secrets("; ".join(problems)),
            "Correct these environment variables and start again",
        ) from None
