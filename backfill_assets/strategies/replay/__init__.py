"""Events read again, safely, into slices: retention first, a reader of its own, fixed ends, one pass for all days of a run."""

from backfill_assets.strategies.replay.asset import replay_asset
from backfill_assets.strategies.replay.debezium import Debezium
from backfill_assets.strategies.replay.events import Events, Field, Json
from backfill_assets.strategies.replay.files import FileEvents
from backfill_assets.strategies.replay.kafka import KafkaEvents
from backfill_assets.strategies.replay.kinesis import KinesisEvents
from backfill_assets.strategies.replay.relation import TableEvents

__all__ = [
    "Debezium",
    "Events",
    "Field",
    "FileEvents",
    "Json",
    "KafkaEvents",
    "KinesisEvents",
    "TableEvents",
    "replay_asset",
]
