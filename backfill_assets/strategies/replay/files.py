"""Events in files: JSON lines (plain or gzipped) or Parquet, a folder or a file for each shard. Needs no broker."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backfill_assets.errors import Away, BadRows, DeclarationError, MissingTable
from backfill_assets.strategies.replay.source import Reading, Shard, must_be_aware

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 20_000
_JSON = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")


@dataclass(frozen=True)
class FileEvents:
    """The events in `folder`, in order: files by name, lines by place.

    Each folder below it is a shard; files beside each other are one. In JSON lines every line is an event's value, and
    `at` names the field with the time at which it was written down (ISO 8601 with a zone, or milliseconds since 1970);
    lines without one count as written when the line before was. Parquet has columns `value`, and maybe `key` and `at`.
    `complete_since` (aware) is the time from which on nothing is missing; by default that of the first event of each
    shard. What is added to a file while it is read is left for the next time; nothing may be taken from one.
    """

    folder: str | Path
    at: str | None = None
    complete_since: datetime | None = None
    shard_word = "folder"

    def __post_init__(self) -> None:
        must_be_aware(self, self.complete_since)

    @property
    def name(self) -> str:
        """What a sentence calls it."""
        return f"the folder {Path(self.folder)}"

    @contextlib.contextmanager
    def open(self, who: str) -> Iterator[Reading]:
        """Open the files that are there now."""
        folder = Path(self.folder)
        if not folder.is_dir():
            raise MissingTable(
                f"no events can be read from {self.name}",
                "there is no such folder",
                "Correct the path, or mount it on this machine",
            )
        yield _Files(self, folder)


class _Files:
    keeps_last_only = False

    def __init__(self, source: FileEvents, folder: Path) -> None:
        self._source, self._spans = source, dict[str, tuple[str, str]]()
        below = sorted(p for p in folder.iterdir() if p.is_dir())
        groups = {p.name: _files(p) for p in below}
        if own := _files(folder):
            groups["."] = own
        self._files = {name: files for name, files in groups.items() if files}
        self._seen = {p: p.stat().st_size for files in self._files.values() for p in files}
        if not self._files:
            raise MissingTable(
                f"no events can be read from {source.name}",
                f"it holds no file that ends in {', '.join((*_JSON, '.parquet'))}",
                "Correct the path",
            )
        self._shards = [self._shard(name, files) for name, files in self._files.items()]

    @property
    def shards(self) -> Sequence[Shard]:
        return self._shards

    def _shard(self, name: str, files: list[Path]) -> Shard:
        total = sum(_count(p) for p in files)
        since = self._source.complete_since or self._first(files)
        return Shard(name, "0", str(total), since, total)

    def _first(self, files: list[Path]) -> datetime:
        for batch in _numbered(files, self._source.at):
            if (moment := batch["at"][0].as_py()) is not None:
                return moment
            break
        raise DeclarationError(
            f"no events can be read from {self._source.name}",
            f"the first event of {files[0].name} does not tell when it was written down, so nobody knows since when"
            " they are whole",
            "Give at='the field with that time', or complete_since=",
        )

    def read(self, shard: Shard, start: datetime, end: datetime | None) -> Iterator[Any]:
        import pyarrow as pa
        import pyarrow.compute as pc

        since, until = (pa.scalar(edge, pa.timestamp("us", "UTC")) for edge in (start, end))
        first = last = None
        left = int(shard.end)
        for whole in _numbered(self._files[shard.name], self._source.at):
            batch = whole.slice(0, left)
            left -= batch.num_rows
            times: Any = batch["at"]
            wanted: Any = pc.greater_equal(times, since)
            if end is not None:
                wanted = pc.and_(wanted, pc.less(times, until))
            kept = batch.filter(pc.or_kleene(pc.is_null(times), wanted))
            if not kept.num_rows:
                continue
            first = kept["ordinal"][0].as_py() if first is None else first
            last = kept["ordinal"][-1].as_py()
            yield kept
        if left:
            raise self._changed(f"{left} of the {shard.end} events of {shard.name} are gone")
        if first is not None and last is not None:
            self._spans[shard.name] = (str(first), str(last + 1))

    def span(self, shard: Shard) -> tuple[str, str] | None:
        return self._spans.get(shard.name)

    def must_be_whole(self) -> None:
        for path, size in self._seen.items():
            now = path.stat().st_size if path.exists() else None
            if now is None or now < size:
                raise self._changed(f"{path.name} {'is gone' if now is None else 'became shorter'}")

    def _changed(self, what: str) -> Away:
        return Away(f"the events of {self._source.name} were not read whole", f"{what} since the run began", "Launch it again once the files stay as they are")  # fmt: skip

    def notes(self) -> Mapping[str, object]:
        return {}


def _files(folder: Path) -> list[Path]:
    return sorted(
        p for p in folder.iterdir() if p.is_file() and (p.name.endswith(_JSON) or p.suffix == ".parquet")
    )  # fmt: skip


def _opened(path: Path) -> io.BufferedIOBase | gzip.GzipFile:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")  # pyright: ignore[reportReturnType]


def _count(path: Path) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if path.suffix == ".parquet":
            return pq.ParquetFile(path).metadata.num_rows
        with _opened(path) as lines:
            return sum(1 for line in lines if line.strip())
    except (OSError, EOFError, zlib.error, pa.ArrowInvalid) as error:
        raise _broken(path, error) from error


def _numbered(files: list[Path], at: str | None) -> Iterator[pa.Table]:
    """Yield the events of a shard with their place in it and the time at which they were written down."""
    import pyarrow as pa

    place, last = 0, None
    for path in files:
        for batch in _told(
            path, _of_parquet(path) if path.suffix == ".parquet" else _of_lines(path, at)
        ):
            times = batch["at"].to_pylist()
            for n, moment in enumerate(times):
                last = times[n] = moment or last
            columns: dict[str, Any] = {
                "ordinal": pa.array(range(place, place + batch.num_rows), pa.int64()),
                "at": pa.array(times, pa.timestamp("us", "UTC")),
                "key": batch["key"],
                "value": batch["value"],
            }
            yield pa.table(columns)
            place += batch.num_rows


def _told(path: Path, batches: Iterator[pa.Table]) -> Iterator[pa.Table]:
    import pyarrow as pa

    try:
        yield from batches
    except (OSError, EOFError, zlib.error, pa.ArrowInvalid) as error:
        raise _broken(path, error) from error


def _broken(path: Path, error: Exception) -> BadRows:
    return BadRows(f"the events in {path.name} cannot be read", f"the file is not whole ({error})", "Put a whole one in its place, then launch this again: nothing was changed")  # fmt: skip


def _of_parquet(path: Path) -> Iterator[pa.Table]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        if "value" not in file.schema_arrow.names:
            raise DeclarationError(
                f"the events in {path.name} cannot be read",
                f"it has no column value, only {', '.join(file.schema_arrow.names)}",
                "Write each event into a column value (bytes or text), beside key and at",
            )
        for found in file.iter_batches(_ROWS):
            got = pa.Table.from_batches([found])
            moment = pa.timestamp("us", "UTC")
            columns: dict[str, Any] = {"value": got["value"].cast(pa.binary())}
            for name, kind in (("key", pa.binary()), ("at", moment)):
                there = name in got.column_names
                columns[name] = got[name].cast(kind, safe=False) if there else pa.nulls(got.num_rows, kind)  # fmt: skip
            yield pa.table(columns)


def _of_lines(path: Path, at: str | None) -> Iterator[pa.Table]:
    with _opened(path) as lines:
        batch: list[bytes] = []
        for line in lines:
            if line.strip():
                batch.append(line.rstrip(b"\r\n"))
            if len(batch) >= _ROWS:
                yield _lines(batch, at)
                batch = []
        if batch:
            yield _lines(batch, at)


def _lines(batch: list[bytes], at: str | None) -> pa.Table:
    import pyarrow as pa

    times = [_time_of(line, at) for line in batch] if at else [None] * len(batch)
    return pa.table(
        {
            "value": pa.array(batch, pa.binary()),
            "key": pa.nulls(len(batch), pa.binary()),
            "at": pa.array(times, pa.timestamp("us", "UTC")),
        }
    )


def _time_of(line: bytes, at: str) -> datetime | None:
    """Return when a line was written down; None where it does not say so."""
    try:
        found: Any = json.loads(line)
        for part in at.split("."):
            found = found[part]
        if isinstance(found, (int, float)) and not isinstance(found, bool):
            return datetime.fromtimestamp(found / 1000, timezone.utc)
        moment = datetime.fromisoformat(str(found).replace("Z", "+00:00"))
    except (ValueError, KeyError, TypeError, IndexError, OverflowError, OSError):
        return None
    return moment if moment.tzinfo is not None else None
