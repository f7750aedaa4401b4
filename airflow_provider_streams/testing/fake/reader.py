"""Reads the fake server's events, and misbehaves as it was told to."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow_provider_streams.errors import SystemUnavailable
from airflow_provider_streams.model.plan.plan import Plan, Span, Split
from airflow_provider_streams.model.plan.receipt import SplitReceipt
from airflow_provider_streams.model.plan.row_filter import RowFilter
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.testing.fake.server_state import Truth, index_of, is_delivered, record_of, value_of

if TYPE_CHECKING:
    import pyarrow as pa

_HOLD_SECONDS = 0.05


class FakeReader:
    """Fulfils `systems.base.SplitReader`."""

    def __init__(self, truth: Truth, plan: Plan, split: Split, schema: pa.Schema, truth_path: str | None) -> None:
        self._truth, self._split, self._schema = truth, split, schema
        self._filter = plan.filter if isinstance(plan.filter, RowFilter) else None
        self._truth_path = truth_path
        self._receipt = SplitReceipt(split.index)

    @property
    def receipt(self) -> SplitReceipt:
        """See `SplitReader`."""
        return self._receipt

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """See `SplitReader`."""
        self._misbehave()
        (start,), (end,) = self._split.start.parts, self._split.end.parts
        for first in range(start, end, self._truth.batch_rows):
            if first > start:
                self._delay()
            batch = self._batch(range(first, min(first + self._truth.batch_rows, end)))
            if batch.num_rows:
                yield batch

    def close(self) -> None:
        """Nothing is held."""

    def _batch(self, numbers: range) -> pa.RecordBatch:
        seen = [n for n in numbers if is_delivered(self._truth, self._split.shard, n)]
        kept = [n for n in seen if self._keeps(n)]
        values = [self._value(n) for n in kept]
        before = self._receipt
        self._receipt = replace(
            before,
            rows=before.rows + len(kept),
            bytes=before.bytes + sum(map(len, values)),
            entries=before.entries + len(seen),
            filtered=before.filtered + len(seen) - len(kept),
            first=before.first or (Position.of(kept[0]) if kept else None),
            last=Position.of(kept[-1]) if kept else before.last,
            gaps=(*before.gaps, *_spans_of(set(numbers) - set(seen))),
        )
        return self._columns(kept, values)

    def _value(self, number: int) -> bytes:
        if self._truth.records:
            return record_of(self._truth, self._split.shard, number)
        return value_of(self._split.shard, number, self._truth.value_bytes)

    def _columns(self, numbers: list[int], values: list[bytes]) -> pa.RecordBatch:
        import pyarrow as pa  # noqa: PLC0415 - planning needs no Arrow

        content: dict[str, Callable[[], list[Any]]] = {
            "value": lambda: values,
            "publish_time": lambda: [self._truth.time_of(n) for n in numbers],
            "shard": lambda: [self._split.shard] * len(numbers),
            "number": lambda: numbers,
            "key": lambda: [f"key-{n % 7}" for n in numbers],
            "properties": lambda: [[("parity", "odd" if n % 2 else "even")] for n in numbers],
        }
        arrays = [pa.array(content[column.name](), column.type) for column in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _keeps(self, number: int) -> bool:
        if self._filter is None:
            return True
        publish_ms = int(self._truth.time_of(number).timestamp() * 1000)
        return self._filter.start_ms <= publish_ms < self._filter.end_ms

    def _misbehave(self) -> None:
        shard = index_of(self._split.shard)
        if [shard] in list(self._truth.faults("crash")) and self._first_time("crash"):
            os.kill(os.getpid(), signal.SIGKILL)
        if [shard] in list(self._truth.faults("fail")) and self._first_time("fail"):
            raise SystemUnavailable(self._split.shard, "it fails once, as it was told to")
        if [shard] in list(self._truth.faults("echo")):
            secret = self._truth.password
            raise SystemUnavailable(self._split.shard, f"it refuses {secret} ({secret[:20]}.., {quote(secret)})")

    def _delay(self) -> None:
        for (milliseconds,) in self._truth.faults("slow"):
            time.sleep(milliseconds / 1000)
        for _ in self._truth.faults("hold"):
            Path(f"{self._truth_path}.held.{os.getpid()}").touch()
            while any(map(Path.exists, self._holds())):
                time.sleep(_HOLD_SECONDS)

    def _holds(self) -> tuple[Path, Path]:
        return Path(f"{self._truth_path}.hold"), Path(f"{self._truth_path}.hold.{os.getpid()}")

    def _first_time(self, what: str) -> bool:
        mark = Path(f"{self._truth_path}.{what}-{index_of(self._split.shard)}")
        try:
            mark.touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


def _spans_of(numbers: Iterable[int]) -> Iterator[Span]:
    run: list[int] = []
    for number in sorted(numbers):
        if run and number != run[-1] + 1:
            yield Span(0, run[0], run[-1] + 1)
            run = []
        run.append(number)
    if run:
        yield Span(0, run[0], run[-1] + 1)
