"""A drop-in for `SnowflakePandasIOManager`: its fields and its metadata, and slices that are replaced all or nothing."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from backfill_assets.engines import Engine
from backfill_assets.engines.snowflake import SnowflakeEngine
from backfill_assets.errors import DeclarationError
from backfill_assets.io_managers.delete_insert import DeleteInsertIOManager
from backfill_assets.writing.run import Lane


class SnowflakeDeleteInsertIOManager(DeleteInsertIOManager):
    """`DeleteInsertIOManager` by the fields of dagster-snowflake's own managers; `partition_expr` and `schema` as there.

    A backfill's runs use `lane_warehouse` and `lane_role` where they are given, on the same database.
    """

    url: str = Field(default="", description="Made of the fields below; leave it out.")
    database: str = Field(description="The database to write to.")
    account: str = Field(description="The account's identifier, as in orgname-accountname.")
    user: str = Field(description="The user to log in as.")
    password: str | None = Field(default=None, description="The user's password.")
    warehouse: str | None = Field(default=None, description="The warehouse that runs statements.")
    role: str | None = Field(default=None, description="The role to write with.")
    private_key: str | None = Field(default=None, description="The user's private key, PEM.")
    private_key_path: str | None = Field(default=None, description="A file with that key.")
    private_key_password: str | None = Field(default=None, description="What decrypts that key.")
    authenticator: str | None = Field(
        default=None, description="externalbrowser, oauth, or another way that the connector knows."
    )
    store_timestamps_as_strings: bool = Field(
        default=False, description="Only False: slices compare times as times."
    )
    additional_snowflake_connection_args: dict[str, Any] | None = Field(
        default=None, description="More arguments of the connector."
    )
    lane_warehouse: str | None = Field(
        default=None, description="The warehouse for runs of the backfill lane."
    )
    lane_role: str | None = Field(default=None, description="The role for them.")
    engine_options: dict[str, str] = Field(
        default_factory=dict,
        description="lock_wait, statement_timeout, stage_schema, warehouse_size and bulk_load, as in a URL.",
    )

    @property
    def has_lane(self) -> bool:
        """Whether runs of the backfill lane have a warehouse or a role of their own."""
        return bool(self.lane_warehouse or self.lane_role)

    def _engine(self, lane: Lane) -> Engine:
        from dagster_snowflake import SnowflakeResource

        if self.store_timestamps_as_strings:
            raise DeclarationError(
                "timestamps cannot be stored as strings",
                "the slices of a table are compared as times",
                "Leave store_timestamps_as_strings out, and declare columns that hold text as iso_text",
            )
        names = (
            "account", "user", "password", "database", "private_key", "private_key_path", "private_key_password",
            "authenticator", "additional_snowflake_connection_args",
        )  # fmt: skip
        given = {name: value for name in names if (value := getattr(self, name)) is not None}
        is_lane = lane == "backfill"
        given["warehouse"] = (self.lane_warehouse if is_lane else None) or self.warehouse
        given["role"] = (self.lane_role if is_lane else None) or self.role
        return SnowflakeEngine.of(SnowflakeResource(**given), **self.engine_options)
