"""What is asked of Kinesis, one call each: limits are waited for, an expired iterator is made anew, the rest is told."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from backfill_assets.engines.drivers import driver
from backfill_assets.errors import (
    Away,
    BackfillError,
    DeclarationError,
    MissingRight,
    MissingTable,
    QuotaExceeded,
    Unreachable,
    shown_cause,
)

_LIMITS = ("ProvisionedThroughputExceededException", "LimitExceededException", "ThrottlingException", "KMSThrottlingException")  # fmt: skip
_RIGHTS = ("AccessDeniedException", "AccessDenied", "KMSAccessDeniedException")
_STRANGERS = (
    "UnrecognizedClientException", "InvalidSignatureException", "ExpiredTokenException", "ExpiredToken",
    "InvalidClientTokenId", "IncompleteSignature", "MissingAuthenticationTokenException", "OptInRequired",
)  # fmt: skip
_LONGEST_WAIT = 10.0


class Calls:
    """A client of one stream. It may be used by several threads."""

    def __init__(
        self, boto3: Any, stream: str, region: str | None, endpoint: str | None, config: Mapping[str, Any],
        patience: float, sleep: Callable[[float], None],
    ) -> None:  # fmt: skip
        self._stream, self._patience, self._sleep = stream, patience, sleep
        self._errors = driver("botocore.exceptions", "Kinesis", "backfill-assets[kinesis]")
        tuned = driver("botocore.config", "Kinesis", "backfill-assets[kinesis]").Config(
            retries={"mode": "standard", "total_max_attempts": 3},
            connect_timeout=10,
            read_timeout=60,
        )
        self._where = endpoint or region or "the environment's region"
        with self._told("be reached"):
            # a session of its own: the default one is not for several threads
            session = boto3.session.Session()
            self._client = session.client("kinesis", **{"region_name": region, "endpoint_url": endpoint, "config": tuned, **config})  # fmt: skip

    def summary(self) -> Mapping[str, Any]:
        """Return since when the stream is there, and for how many hours it keeps an event."""
        found = self._call("DescribeStreamSummary", StreamName=self._stream)
        return found["StreamDescriptionSummary"]

    def shards(self) -> list[Mapping[str, Any]]:
        """Return every shard that still holds events, also those that were closed by a resharding."""
        found = self._call("ListShards", StreamName=self._stream)
        shards = list(found["Shards"])
        while found.get("NextToken"):
            found = self._call("ListShards", NextToken=found["NextToken"])
            shards += found["Shards"]
        return shards

    def at(self, shard: str, moment: datetime) -> str | None:
        """Return where to read from for what arrived at `moment` or later."""
        asked = {"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": moment}
        return self._call("GetShardIterator", StreamName=self._stream, ShardId=shard, **asked)["ShardIterator"]  # fmt: skip

    def records(self, shard: str, iterator: str, most: int, *, after: str | None, since: datetime) -> Mapping[str, Any]:  # fmt: skip
        """Read on; where the iterator has expired, behind the record `after`, or else from `since` on."""
        for _ in range(3):
            try:
                return self._call("GetRecords", ShardIterator=iterator, Limit=most)
            except self._errors.ClientError:  # only the one that is left, an expired iterator
                iterator = self._behind(shard, after) if after else str(self.at(shard, since))
        raise self._away("its iterators expire at once")

    def _behind(self, shard: str, number: str) -> str:
        asked = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "StartingSequenceNumber": number}
        return self._call("GetShardIterator", StreamName=self._stream, ShardId=shard, **asked)["ShardIterator"]  # fmt: skip

    def _call(self, operation: str, **asked: Any) -> Mapping[str, Any]:
        """Call it, waiting where a limit is exceeded."""
        method = getattr(self._client, self._client_method(operation))
        waited, wait = 0.0, 0.5
        while True:
            try:
                with self._told(operation):
                    return method(**asked)
            except QuotaExceeded:
                if waited + wait > self._patience:
                    raise
                self._sleep(wait)
                waited, wait = waited + wait, min(2 * wait, _LONGEST_WAIT)

    @staticmethod
    def _client_method(operation: str) -> str:
        return "".join(f"_{c.lower()}" if c.isupper() else c for c in operation).lstrip("_")

    @contextlib.contextmanager
    def _told(self, operation: str) -> Iterator[None]:
        errors = self._errors
        try:
            yield
        except errors.ClientError as error:
            if error.response["Error"]["Code"] == "ExpiredIteratorException":
                raise
            raise self._ours(error, operation) from shown_cause(error)
        except errors.NoRegionError as error:
            raise DeclarationError(self._what, "no region is declared, nor in the environment", "Give region='eu-central-1', for example") from error  # fmt: skip
        except (errors.NoCredentialsError, errors.PartialCredentialsError) as error:
            raise Unreachable(self._what, f"no credentials were found ({error})", "Give the role of this machine the rights, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY") from shown_cause(error)  # fmt: skip
        except (errors.BotoCoreError, ValueError) as error:
            raise self._away(str(error)) from shown_cause(error)

    @property
    def _what(self) -> str:
        return f"stream {self._stream} cannot be replayed"

    def _away(self, said: str) -> Away:
        return Away(self._what, f"Kinesis at {self._where} did not answer ({said})", "Look at the region, the endpoint and the network, then launch it again: nothing was changed")  # fmt: skip

    def _ours(self, error: Any, operation: str) -> BackfillError:
        """Return an error of the service as one of ours."""
        code, said = error.response["Error"]["Code"], error.response["Error"].get("Message", "")
        if code == "ResourceNotFoundException":
            return MissingTable(self._what, f"there is no such stream at {self._where}", "Correct the name or the region")  # fmt: skip
        if code in _RIGHTS:
            return MissingRight(self._what, f"this role may not {operation} ({said})", "Grant kinesis:DescribeStreamSummary, ListShards, GetShardIterator and GetRecords on the stream (and kms:Decrypt on the key, where it is encrypted)")  # fmt: skip
        if code in _LIMITS:
            return QuotaExceeded(self._what, f"its readers together exceed its limits, and {operation} was refused for {self._patience:.0f} s ({said})", "Launch it again later or with a smaller share=: nothing was changed")  # fmt: skip
        if code in _STRANGERS:
            return Unreachable(self._what, f"Kinesis at {self._where} did not accept the credentials ({code}: {said})", "Correct the credentials, or renew them")  # fmt: skip
        return self._away(f"{operation}: {code}: {said}")

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
