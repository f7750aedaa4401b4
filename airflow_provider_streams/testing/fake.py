"""A stream system that needs no server: shards of numbered events, the same in every process.

Event `n` of a shard was published at `epoch + n * interval_ms` and holds `<shard>:<n>`, padded with dots. What the
"server" holds is decided by the options, or by a JSON file of the same names (`truth`), which is read again at every
call: a test that changes the file changes what every process sees. `dump(path, ..)` writes such a file.

Faults (option `fault`, several separated by commas):

| fault | what the reader does |
|---|---|
| `drop:<shard>:<n>` | never delivers event n; nothing explains it |
| `trim:<shard>:<n>` | finds, while reading, that everything before n is gone |
| `fail:<shard>` | fails once, `SystemUnavailable`; later attempts succeed (needs `truth`) |
| `crash:<shard>` | kills its process once (needs `truth`) |
| `slow:<milliseconds>` | waits before each batch but the first |
| `hold` | waits before each batch but the first while the file `<truth>.hold` exists (needs `truth`) |
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from airflow_provider_streams.errors import (
    AuthenticationFailed,
    EventsLost,
    InvalidRequest,
    PlanMismatch,
    StartTrimmed,
    SystemUnavailable,
    WindowNotReady,
)
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.plan import (
    Estimate,
    Loss,
    OnLoss,
    Plan,
    PlanRequest,
    Range,
    RowFilter,
    SourceRef,
    Span,
    Split,
)
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.model.receipt import SplitReceipt
from airflow_provider_streams.systems.base import Option, Recorded

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_provider_streams.model.source import Source

EPOCH = datetime(2026, 11, 20, 10, tzinfo=UTC)
"""When event 0 of every shard was published, unless an option says otherwise."""

_COLUMNS = ("value", "publish_time", "shard", "number")
_OPTIONAL = ("key", "properties")
_HOLD_SECONDS = 0.05
_FAULTS = ("drop", "trim", "fail", "crash", "slow", "hold")


@dataclass(frozen=True, slots=True)
class FakeSource:
    """A fake stream on one connection."""

    system: ClassVar[str] = "fake"

    name: str = "numbers"
    conn_id: str = "fake_default"

    def __str__(self) -> str:
        return self.name

    @property
    def key(self) -> str:
        """`fake:<connection>:<name>`."""
        return f"fake:{self.conn_id}:{self.name}"

    @property
    def asset_uri(self) -> str:
        """`fake://<connection>/<name>`."""
        return f"fake://{self.conn_id}/{self.name}"


@dataclass(frozen=True, slots=True)
class Truth:
    """What the fake server holds, and how it misbehaves."""

    shards: int = 2
    events: int = 100
    """Per shard."""
    value_bytes: int = 16
    head: int = 0
    """The first event still held, in every shard."""
    epoch: datetime = EPOCH
    interval_ms: int = 1000
    now: datetime | None = None
    """Until when publishing is known to be over; None: one interval after the last event."""
    marker_every: int = 0
    """Every so many-th entry is a marker: stored, and never delivered. 0: none."""
    late_every: int = 0
    """Every so many-th event is late: stored in its place, published `late_by_ms` earlier. 0: none."""
    late_by_ms: int = 600_000
    batch_rows: int = 1000
    fault: str = ""
    password: str = field(default="", repr=False)
    """What the server demands as `token`; empty: anything."""

    @property
    def end_time(self) -> datetime:
        """See `now`."""
        return self.now or self.stored_at(self.events)

    def time_of(self, number: int) -> datetime:
        """When this event was published."""
        is_late = self.late_every and number % self.late_every == self.late_every - 1
        return self.stored_at(number) - timedelta(milliseconds=self.late_by_ms if is_late else 0)

    def stored_at(self, number: int) -> datetime:
        """When this event came to lie in its place."""
        return self.epoch + timedelta(milliseconds=number * self.interval_ms)

    def at(self, moment: datetime) -> int:
        """The first event stored at or after a moment, within `[0, events]`."""
        number = -((self.epoch - moment) // timedelta(milliseconds=self.interval_ms))
        return min(max(number, 0), self.events)

    def faults(self, kind: str) -> Iterator[list[int]]:
        """The arguments of each fault of a kind."""
        for text in filter(None, self.fault.split(",")):
            name, *arguments = text.split(":")
            if name not in _FAULTS:
                raise InvalidRequest(f"no fault {name!r}; known: {', '.join(_FAULTS)}")
            if name == kind:
                yield [int(argument) for argument in arguments]

    @classmethod
    def parse(cls, settings: Mapping[str, object]) -> Self:
        """From texts or JSON values by field name; others are ignored."""
        known = {one.name for one in fields(cls)}
        values: dict[str, object] = {}
        for name, value in settings.items():
            if name in known and value not in ("", None):
                values[name] = _parse(name, str(value))
        return cls(**values)  # type: ignore[arg-type]  # _parse gives each field its type


def _parse(name: str, text: str) -> object:
    if name in ("epoch", "now"):
        return datetime.fromisoformat(text)
    return text if name in ("fault", "password") else int(text)


def dump(path: Path | str, **truth: object) -> Path:
    """Write a truth file, atomically; the names are `Truth`'s."""
    target = Path(path)
    draft = target.with_name(f"{target.name}.{os.getpid()}")
    draft.write_text(json.dumps(truth, default=str))
    return draft.rename(target)


class FakeSystem:
    """Fulfils `systems.base.StreamSystem` without a server. Positions are `(n,)`, spans `(0, first, end)`."""

    name: ClassVar[str] = "fake"
    options: ClassVar[tuple[Option, ...]] = (
        Option("stream", "the stream's name", "numbers", aliases=("topic",)),
        Option("truth", "a JSON file that overrides every other option, read at each call"),
        Option("token", "what the server may demand", secret=True, aliases=("auth.token",)),
        *(Option(one.name, f"see Truth.{one.name}", secret=one.name == "password") for one in fields(Truth)),
    )

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = dict(options)

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """See `StreamSystem`."""
        Truth.parse(options)
        return cls(options)

    def __repr__(self) -> str:
        return f"FakeSystem({self.truth})"

    @property
    def truth(self) -> Truth:
        """What the server holds now.

        Raises:
            SystemUnavailable: the truth file is named, but not there: the server is down.
        """
        path = self._options.get("truth")
        if not path:
            return Truth.parse(self._options)
        try:
            return Truth.parse({**self._options, **json.loads(Path(path).read_text())})
        except OSError as error:
            raise SystemUnavailable(path, type(error).__name__) from error

    def source(self, options: Mapping[str, str]) -> FakeSource:
        """See `StreamSystem`."""
        return FakeSource(options.get("stream") or "numbers")

    def parse_cut(self, source: Source, text: str | Mapping[str, str]) -> Cut:
        """`earliest`, `latest`, a number for every shard, or numbers by shard."""
        truth = self.truth
        if not isinstance(text, str):
            return Cut.from_json(text)
        number = {"earliest": truth.head, "latest": truth.events}.get(text)
        return _cut(truth, source, int(text) if number is None else number)

    def tail(self, source: Source) -> Cut:
        """See `StreamSystem`: after the last event."""
        truth = self._authenticated()
        return _cut(truth, source, truth.events)

    def go_on(self, earlier: Cut, tail: Cut) -> Cut | None:
        """See `StreamSystem`."""
        return earlier.extend(tail)

    def horizon(self, source: Source, recorded: Recorded | None = None) -> datetime | None:  # noqa: ARG002 - it knows
        """See `StreamSystem`: when the first event still held was published."""
        truth = self._authenticated()
        return truth.stored_at(truth.head) if truth.head else None

    def plan(self, request: PlanRequest) -> Plan:
        """See `StreamSystem`."""
        truth = self._authenticated()
        start, end = _cuts(truth, request)
        head = _cut(truth, request.source, truth.head)
        ranges, losses = _ranges(truth, request, start, end)
        splits = tuple(_splits(truth, ranges, request.target_split_bytes))
        return Plan(
            reader=request.reader,
            source=SourceRef(self.name, request.source.conn_id, (str(request.source),)),
            window=request.window,
            basis=request.basis,
            filter=_row_filter(request),
            start_cut=start,
            end_cut=end,
            ranges=ranges,
            splits=splits,
            estimate=Estimate(sum(r.bytes for r in ranges), sum(r.entries or 0 for r in ranges)),
            observed_at=truth.end_time,
            head=head,
            losses=losses,
        )

    def schema(self, columns: Sequence[str] | None) -> pa.Schema:
        """`value, publish_time, shard, number`; on request `key, properties`."""
        import pyarrow as pa  # noqa: PLC0415 - planning needs no Arrow

        types: dict[str, pa.DataType] = {
            "value": pa.binary(),
            "publish_time": pa.timestamp("us", tz="UTC"),
            "shard": pa.string(),
            "number": pa.int64(),
            "key": pa.string(),
            "properties": pa.map_(pa.string(), pa.string()),
        }
        names = _COLUMNS if columns is None else tuple(columns)
        for unknown in set(names) - types.keys():
            raise InvalidRequest(f"no column {unknown!r}; known: {', '.join(_COLUMNS + _OPTIONAL)}")
        return pa.schema([(name, types[name]) for name in names])

    def read(self, plan: Plan, split: Split, columns: Sequence[str] | None = None) -> FakeReader:
        """See `StreamSystem`."""
        return FakeReader(self._authenticated(), plan, split, self.schema(columns), self._options.get("truth"))

    def explain(self, plan: Plan, receipts: Iterable[SplitReceipt], *, on_loss: OnLoss) -> tuple[SplitReceipt, ...]:
        """Markers are markers; what lies before the head, or before a `trim` fault, is lost."""
        truth = self.truth
        shards = {split.index: split.shard for split in plan.splits}
        explained = []
        for receipt in receipts:
            causes: Counter[str] = Counter()
            unexplained: list[Span] = []
            for number in (n for gap in receipt.gaps for n in range(gap.first, gap.end)):
                cause = _cause(truth, shards[receipt.index], number)
                if cause is None:
                    unexplained.append(Span(0, number, number + 1))
                else:
                    causes[cause] += 1
            if causes["lost"] and on_loss == "fail":
                gap = receipt.gaps[0]
                raise EventsLost(shards[receipt.index], gap.first, gap.end, f"{causes['lost']} events", "trimmed")
            explained.append(receipt.explain(causes, tuple(unexplained)))
        return tuple(explained)

    def close(self) -> None:
        """Nothing is held."""

    def _authenticated(self) -> Truth:
        truth = self.truth
        if truth.password and self._options.get("token") != truth.password:
            raise AuthenticationFailed("the fake server")
        return truth


class FakeReader:
    """Fulfils `systems.base.SplitReader`."""

    def __init__(self, truth: Truth, plan: Plan, split: Split, schema: pa.Schema, truth_path: str | None) -> None:
        self._truth, self._filter, self._split, self._schema = truth, plan.filter, split, schema
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
        seen = [n for n in numbers if _delivered(self._truth, self._split.shard, n)]
        kept = [n for n in seen if self._keeps(n)]
        values = [value_of(self._split.shard, n, self._truth.value_bytes) for n in kept]
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
        shard = _index(self._split.shard)
        if [shard] in list(self._truth.faults("crash")) and self._first_time("crash"):
            os.kill(os.getpid(), signal.SIGKILL)
        if [shard] in list(self._truth.faults("fail")) and self._first_time("fail"):
            raise SystemUnavailable(self._split.shard, "it fails once, as it was told to")

    def _delay(self) -> None:
        for (milliseconds,) in self._truth.faults("slow"):
            time.sleep(milliseconds / 1000)
        for _ in self._truth.faults("hold"):
            while Path(f"{self._truth_path}.hold").exists():
                time.sleep(_HOLD_SECONDS)

    def _first_time(self, what: str) -> bool:
        mark = Path(f"{self._truth_path}.{what}-{_index(self._split.shard)}")
        try:
            mark.touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


def value_of(shard: str, number: int, size: int) -> bytes:
    """The payload of one event."""
    return f"{shard}:{number}".encode().ljust(size, b".")


def _index(shard: str) -> int:
    return int(shard.rpartition("-")[2])


def _cut(truth: Truth, source: Source, number: int) -> Cut:
    return Cut({f"{source}-{shard}": Position.of(number) for shard in range(truth.shards)})


def _cuts(truth: Truth, request: PlanRequest) -> tuple[Cut, Cut]:
    window, source = request.window, request.source
    by_time = request.basis in ("publish", "event")
    if by_time and window.end > truth.end_time:
        raise WindowNotReady(source, window, f"events are known only until {truth.end_time.isoformat()}")
    slack = request.slack if request.basis == "publish" else timedelta(0)
    first = max(truth.at(window.start - slack), min(truth.head, truth.at(window.start))) if by_time else truth.head
    last = truth.at(window.end + slack) if by_time else truth.events
    start = request.start_cut or _cut(truth, source, first)
    end = request.end_cut or _cut(truth, source, last)
    if start.keys() != end.keys():
        raise PlanMismatch(f"{source}: start and end cut must name the same shards")
    return start, end


def _row_filter(request: PlanRequest) -> RowFilter | None:
    if request.basis not in ("publish", "event"):
        return None
    return RowFilter("publish_time", request.window.start_ms, request.window.end_ms)


def _ranges(truth: Truth, request: PlanRequest, start: Cut, end: Cut) -> tuple[tuple[Range, ...], tuple[Loss, ...]]:
    ranges, losses = [], []
    head = Position.of(truth.head)
    for shard, wanted in start.items():
        if wanted < head and wanted < end[shard]:
            if request.on_loss == "fail":
                raise StartTrimmed(shard, wanted, head)
            losses.append(Loss(shard, wanted, min(head, end[shard]), "trimmed"))
        first = min(max(wanted, head), end[shard])
        entries = end[shard].parts[0] - first.parts[0]
        verdict = "ok" if entries else "empty"
        ranges.append(Range(shard, first, end[shard], entries * truth.value_bytes, entries, head, verdict))
    return tuple(ranges), tuple(losses)


def _splits(truth: Truth, ranges: Iterable[Range], target_bytes: int) -> Iterator[Split]:
    step = max(1, target_bytes // max(1, truth.value_bytes))
    index = 0
    for one in ranges:
        for first in range(one.start.parts[0], one.end.parts[0], step):
            end = min(first + step, one.end.parts[0])
            size = (end - first) * truth.value_bytes
            yield Split(index, one.shard, Position.of(first), Position.of(end), size, (Span(0, first, end),))
            index += 1


def _delivered(truth: Truth, shard: str, number: int) -> bool:
    if [_index(shard), number] in list(truth.faults("drop")):
        return False
    return _cause(truth, shard, number) is None


def _cause(truth: Truth, shard: str, number: int) -> str | None:
    """Why the server never delivers this entry; None: it does."""
    if number < truth.head or any(s == _index(shard) and number < n for s, n in truth.faults("trim")):
        return "lost"
    if truth.marker_every and number % truth.marker_every == truth.marker_every - 1:
        return "marker"
    return None


def _spans_of(numbers: Iterable[int]) -> Iterator[Span]:
    run: list[int] = []
    for number in sorted(numbers):
        if run and number != run[-1] + 1:
            yield Span(0, run[0], run[-1] + 1)
            run = []
        run.append(number)
    if run:
        yield Span(0, run[0], run[-1] + 1)
