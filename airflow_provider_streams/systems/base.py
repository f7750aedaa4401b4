"""How a stream system answers: the protocol that every system's folder implements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Protocol, Self, runtime_checkable

from airflow_provider_streams.errors import SourceReplaced
from airflow_provider_streams.model.plan.plan import OnLoss, Plan, PlanRequest, Split
from airflow_provider_streams.model.plan.receipt import SplitReceipt
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.stream.tail_observation import Incarnation, TailObservation

if TYPE_CHECKING:
    import pyarrow as pa

Recorded = Callable[[], Iterable[tuple[datetime, Cut, Incarnation]]]
"""Recorded cuts with the time their sampling began, and the source's incarnation then; oldest first."""


class SplitReader(Protocol):
    """Reads one split, once."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Arrow batches of the asked columns, at most 20,000 rows and about 4 MiB each.

        Raises:
            DataLoss: the split's events are no longer there.
            ReadStalled: the server went silent before the split's end.
            SystemUnavailable: it could not be reached in bounded time.
        """

    @property
    def receipt(self) -> SplitReceipt:
        """What was read; complete once the iteration has ended."""

    def close(self) -> None:
        """Close what is open, at any moment."""


@runtime_checkable
class ZeroCopyReader(Protocol):
    """A reader that need not copy what it received."""

    def lend(self) -> None:
        """Before the first batch: give binary values as `binary_view` of the received memory.

        Batches come in groups that share their memory, at most twice the size of the group's values. All of it is held
        as long as one of them is.
        """


@runtime_checkable
class FanningOut(Protocol):
    """A system whose sources may be several topics or streams, each of which can be a source of its own."""

    def singles(self, source: Source) -> Sequence[Source]:
        """The topics or streams that a source is now, each as a source of its own, read as it is."""


@runtime_checkable
class StartsByShard(Protocol):
    """A system in whose cuts `earliest` may be said of single shards."""

    def parse_start(self, source: Source, text: str | Mapping[str, str]) -> Cut:
        """A user's cut as the start of a window, without shards at `earliest`: the planner finds their heads."""


class StreamSystem(Protocol):
    """A reachable stream system: plans windows, reads splits. Connects when used, not when built.

    Whatever asks the system raises `AccessError` or `SystemUnavailable` if it refuses or does not answer, and
    `SourceNotFound` if there is no such source.
    """

    name: ClassVar[str]

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """From settings by their option names; unknown names are ignored.

        Raises:
            InvalidRequest: a setting is missing or malformed.
        """

    def source(self, options: Mapping[str, str]) -> Source:
        """The source that stand-alone Spark options name (Pulsar: `topic`, `topics`, `topicsPattern`).

        Raises:
            InvalidRequest: none, or a malformed one.
        """

    def parse_cut(self, source: Source, text: str | Mapping[str, str]) -> Cut:
        """A user's cut: `earliest`, `latest`, or per shard a position in one of the system's notations."""

    def tail(self, source: Source) -> Cut:
        """A cut just after every event that was acknowledged before the call; later ones may also be before it.

        Shards are asked one after the other. It is never before an earlier tail of the same incarnation.
        """

    def go_on(self, earlier: Cut, tail: Cut) -> Cut | None:
        """The cut to record after an earlier one, given a tail; None: the tail is before it in some shard. Pure."""

    def horizon(self, source: Source, recorded: Recorded | None = None) -> datetime | None:
        """The retention horizon: windows that start after it by more than the slack are still held whole.

        None: nothing was ever removed, or the system cannot say.

        Args:
            source: the source.
            recorded: its recorded cuts, oldest first, for systems whose events carry no time; asked only by these.
        """

    def plan(self, request: PlanRequest) -> Plan:
        """Resolve a window to positions.

        Raises:
            WindowNotReady: its end is not certain yet.
            StartTrimmed: its start is no longer held, and loss is not accepted.
            StartUnproven: nothing proves that it is held whole, and that is not accepted.
        """

    def observe_tail(self, source: Source) -> TailObservation:
        """Where the source's shards end now. Kept in the journal, it later proves what was removed since."""

    def incarnation(self, source: Source) -> Incarnation:
        """Which incarnation of the source is there now; empty: the system does not say."""

    def other_incarnation(self, source: Source, incarnation: Incarnation) -> SourceReplaced | None:
        """Why cuts cannot follow one of this incarnation of the source; None: they can, or it is not known."""

    def check_origin(self, plan: Plan) -> None:
        """Refuse a plan of another cluster, or of an earlier incarnation of its source.

        Asked once before a plan is read.

        Raises:
            SourceReplaced: `plan.source` is now on another cluster, or another incarnation.
        """

    def schema(self, columns: Sequence[str] | None) -> pa.Schema:
        """The Arrow schema of these columns, in this order; None: the default ones.

        Raises:
            InvalidRequest: an unknown column, naming the known ones.
        """

    def read(
        self, plan: Plan, split: Split, columns: Sequence[str] | None = None, *, on_loss: OnLoss = "fail"
    ) -> SplitReader:
        """A reader of one split. With `on_loss="record"` it reads what is left of it."""

    def explain(self, plan: Plan, receipts: Iterable[SplitReceipt], *, on_loss: OnLoss) -> tuple[SplitReceipt, ...]:
        """The receipts with their gaps explained by asking the system what those units were.

        Raises:
            EventsLost: a gap's units are gone and `on_loss` is `fail`.
        """

    def close(self) -> None:
        """Close what was opened."""
