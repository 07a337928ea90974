"""Streams that moto serves on loopback: events with arrival times of a test's own, and what goes wrong on the way."""

from __future__ import annotations

import base64
import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.request import Request, urlopen

import boto3
from moto.core import DEFAULT_ACCOUNT_ID
from moto.kinesis.models import kinesis_backends
from moto.server import ThreadedMotoServer

REGION = "eu-central-1"
SECRETS = {"aws_access_key_id": "tester", "aws_secret_access_key": "tester"}


class Streams:
    """A running server. It does not age events out, and its clock is today's, so both are set by the test."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.client = boto3.session.Session().client("kinesis", region_name=REGION, endpoint_url=endpoint, **SECRETS)  # fmt: skip

    def make(self, name: str, made: datetime, shards: int = 2, hours: int = 24 * 7) -> str:
        """Make a stream of that age and retention, and return its name."""
        self.client.create_stream(StreamName=name, ShardCount=shards)
        self._inside(name).creation_datetime = _naive(made)
        self.keep(name, hours)
        return name

    def keep(self, name: str, hours: int) -> None:
        self._inside(name).retention_period_hours = hours

    def made(self, name: str, moment: datetime) -> None:
        self._inside(name).creation_datetime = _naive(moment)

    def send(self, name: str, events: Sequence[tuple[int, datetime, str, Any]]) -> None:
        """Send events as (number of the open shard, arrival, key, value); a value that is not bytes goes as JSON."""
        stream = self._inside(name)
        shards = [shard for shard in stream.shards.values() if shard.is_open]
        for place, arrived, key, value in events:
            body = value if isinstance(value, bytes) else json.dumps(value).encode()
            # by its own door, moto puts them also into shards that are closed
            number = shards[place].put_record(key, base64.b64encode(body).decode(), "")
            record = shards[place].records[int(number)]
            record.created_at_datetime = _naive(arrived)
            record.created_at = arrived.timestamp()

    def split(self, name: str, place: int = 0) -> None:
        """Close a shard; two new ones take what comes later."""
        stream = self._inside(name)
        shard = [shard for shard in stream.shards.values() if shard.is_open][place]
        kept = dict(shard.records)
        middle = (shard.starting_hash + shard.ending_hash) // 2
        self.client.split_shard(StreamName=name, ShardToSplit=shard.shard_id, NewStartingHashKey=str(middle))  # fmt: skip
        # the real ones leave events where they are
        for child in [s for s in stream.shards.values() if s.parent == shard.shard_id]:
            child.records.clear()
        shard.records.clear()
        shard.records.update(kept)

    def consumers(self, name: str) -> int:
        return len(self.client.list_stream_consumers(StreamARN=self._inside(name).arn)["Consumers"])

    @staticmethod
    def _inside(name: str) -> Any:
        return kinesis_backends[DEFAULT_ACCOUNT_ID][REGION].streams[name]


def _naive(moment: datetime) -> datetime:
    return moment.astimezone(timezone.utc).replace(tzinfo=None)


@contextlib.contextmanager
def streams() -> Iterator[Streams]:
    """Start a server on a free port of loopback, and stop it at the end."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield Streams(f"http://{host}:{port}")
    finally:
        server.stop()


@contextlib.contextmanager
def through(endpoint: str, refuse: Callable[[str, int], str | None]) -> Iterator[str]:
    """Serve what `endpoint` does, but refuse call `number` (from 1) of an operation where `refuse` names an error."""
    counts: dict[str, int] = {}
    turn = threading.Lock()

    class Between(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            operation = self.headers["X-Amz-Target"].rpartition(".")[2]
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with turn:
                counts[operation] = counts.get(operation, 0) + 1
                code = refuse(operation, counts[operation])
            if code:
                said = json.dumps({"__type": code, "message": "said on the way"}).encode()
                self._answer(400, said, "application/x-amz-json-1.1")
                return
            sent = {k: v for k, v in self.headers.items() if k.lower() not in ("host", "connection")}  # fmt: skip
            with urlopen(Request(endpoint, body, sent), timeout=30) as found:
                self._answer(found.status, found.read(), found.headers["Content-Type"])

        def _answer(self, status: int, body: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Between)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
