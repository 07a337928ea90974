"""Payments by days, made from events: the last one of each payment, read again from files that stand for a topic."""

from pathlib import Path

import dagster as dg

from backfill_assets.payments.tables import FCT_PAYMENTS, FIRST_PARTITION, KEPT_SINCE
from backfill_assets.settings import settings
from backfill_assets.strategies.replay import Events, FileEvents, replay_asset

DAYS = dg.DailyPartitionsDefinition(start_date=FIRST_PARTITION.isoformat(), timezone="UTC")

# `KafkaEvents("broker:9092", "payments", live_group="payments-loader")` reads a topic in its place
PAYMENT_EVENTS = FileEvents(
    Path(settings().events) / "payments", at="written_at", complete_since=KEPT_SINCE
)

fct_payments = replay_asset(
    ["analytics", "fct_payments"],
    source=PAYMENT_EVENTS,
    events=Events(
        fields={
            "payment_id": "BIGINT",
            "version": "INTEGER",
            "op": "VARCHAR",
            "paid_at": "TIMESTAMPTZ",
            "currency": "VARCHAR",
            "minor": "BIGINT",
        },
        time="paid_at",
        key=("payment_id",),
        ordering=("version",),
        deleted="op = 'voided'",
        poison="quarantine",
    ),
    table=FCT_PAYMENTS,
    partitions_def=DAYS,
    transform="""
    SELECT
      CAST(paid_at AT TIME ZONE 'UTC' AS DATE) AS paid_on,
      payment_id,
      currency,
      CAST(CASE WHEN currency = 'JPY' THEN minor ELSE minor / 100.0 END AS DECIMAL(18, 2)) AS amount
    FROM events
    """,
    group_name="payments",
    code_version="2",
    description="Payments by the UTC day on which they were made. Version 1 took yen for having hundredths.",
)
