"""What became of the windows that a task read."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from airflow_provider_streams.errors import BackfillIncomplete, FanOutIncomplete, StreamsError, causes_text
from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.model.sinks.landing import rows_text, sum_of_written
from airflow_provider_streams.model.window.coverage_timeline import undecodable_words
from airflow_provider_streams.windows.run.request import OneWindow, ReadRequest

if TYPE_CHECKING:
    from airflow_provider_streams.model.plan.plan import Plan
    from airflow_provider_streams.model.plan.receipt import Receipt
    from airflow_provider_streams.model.sinks.landing import Landed
    from airflow_provider_streams.model.sinks.sink import Sink
    from airflow_provider_streams.model.window.window import Window
    from airflow_provider_streams.spark.job.outcomes import WindowFailure
    from airflow_provider_streams.windows.plan.planning import WindowRead

LandedWindow = tuple["WindowRead", "Plan", "Landed"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of windows, of one table or of many."""

    landed: tuple[LandedWindow, ...] = ()
    """The windows that are covered now, and what was read of each."""
    failures: Mapping[tuple[str, Window], WindowFailure] = field(default_factory=dict)
    """By source and window."""
    before: int = 0
    """Windows that an earlier try of this task has covered: they were not read again."""

    @property
    def covered(self) -> tuple[Window, ...]:
        """The windows that are covered now."""
        return tuple(plan.window for _, plan, _ in self.landed)

    @property
    def rows(self) -> int:
        """What was read of all windows that were landed now, before a transform."""
        return sum(landed.receipt.rows for _, _, landed in self.landed)

    @property
    def written(self) -> int | None:
        """Their rows in the tables; None: not all were counted."""
        return sum_of_written(landed for _, _, landed in self.landed)

    @property
    def bytes(self) -> int:
        """Payload bytes of these rows."""
        return sum(landed.receipt.bytes for _, _, landed in self.landed)

    def total(self, name: str) -> int:
        """One of the receipts' totals, of all windows."""
        return sum(landed.receipt.totals[name] for _, _, landed in self.landed)

    @property
    def words(self) -> str:
        """A line for logs and terminals."""
        said = f"{counted(len(self.landed), 'window')} covered, {rows_text(self.rows, self.written)}"
        if others := sum(landed.receipt.other_type for _, _, landed in self.landed):
            said += f", {counted(others, 'event')} of another type set aside"
        kinds = sum((Counter(landed.receipt.kinds) for _, _, landed in self.landed), Counter[str]())
        if kinds:
            said += f", with {kind_words(kinds)}"
        quarantined, dropped = self.total("quarantined"), self.total("dropped")
        if quarantined or dropped:
            said += f" ({undecodable_words(quarantined, dropped)})"
        said += f", {self.before} by an earlier try" if self.before else ""
        return said + (f", {len(self.failures)} failed" if self.failures else "")

    @property
    def is_retryable(self) -> bool:
        """Whether some failure may pass by itself."""
        return any(one.retryable for one in self.failures.values())

    def and_then(self, other: Outcome) -> Outcome:
        """Both together."""
        failures = {**self.failures, **other.failures}
        return Outcome((*self.landed, *other.landed), failures, self.before + other.before)

    def without_replaced(self) -> Outcome:
        """Without windows that later ones of their table replaced, as they may with `overlap="replace"`."""
        standing: dict[str, list[tuple[Window, int]]] = defaultdict(list)
        for number, (read, plan, _) in enumerate(self.landed):
            known, window = standing[read.source_key], plan.window
            first = bisect_right(known, window.start, key=lambda held: held[0].end)
            last = bisect_left(known, window.end, key=lambda held: held[0].start)
            known[first:last] = [(window, number)]
        kept = sorted(number for known in standing.values() for _, number in known)
        return replace(self, landed=tuple(self.landed[number] for number in kept))

    def check(self, request: ReadRequest, *, planned: int | None = None) -> None:
        """Raise an error that names what is not landed.

        Args:
            request: what was to be read.
            planned: how many could be landed, of a dry run, which lands none.

        Raises:
            FanOutIncomplete: windows of a table among many.
            BackfillIncomplete: windows of a span.
            BaseException: as the failure of a single window says.
        """
        if not self.failures:
            return
        windows, retryable = request.windows, self.is_retryable
        if request.tables is not None:
            is_one = isinstance(windows, OneWindow)
            what = f"window {windows.span}" if is_one else f"windows of {windows.span}"
            causes = self._causes(names_windows=not is_one)
            landed = len(self.landed) + self.before
            raise FanOutIncomplete(request.source, what, landed, causes, retryable=retryable, planned=planned)
        if isinstance(windows, OneWindow):
            (failure,) = self.failures.values()
            raise failure.exception
        raise BackfillIncomplete(request.source, len(self.landed), self.by_window(), retryable=retryable)

    def by_window(self) -> dict[str, str]:
        """The causes of the failures of one table, by window."""
        return {str(window): _cause(one) for (_, window), one in self.failures.items()}

    @contextmanager
    def noting_earlier_failures(self) -> Iterator[None]:
        """An error that concerns all windows, raised within, gets a note on what failed before it."""
        try:
            yield
        except StreamsError as error:
            several = len({window for _, window in self.failures}) > 1
            name_earlier(error, self._causes(names_windows=several))
            raise

    def _causes(self, *, names_windows: bool) -> dict[str, str]:
        return {
            f"{name} {window}" if names_windows else name: _cause(one) for (name, window), one in self.failures.items()
        }

    def notes(self) -> Iterator[str]:
        """What users should know of events that became no rows."""
        for read, plan, landed in self.landed:
            if said := undecodable_sentence(plan.window, landed.receipt, read.landing.sink):
                yield said


def name_earlier(error: StreamsError, causes: Mapping[str, str]) -> None:
    """Note on an error what had failed before it."""
    if causes:
        error.add_note(f"Failed before this: {causes_text(causes)}")


def _cause(failure: WindowFailure) -> str:
    return f"{failure.error_type}: {failure.message}"


def other_type_sentence(window: Window, receipt: Receipt) -> str:
    """How many of a window's events are of record types that the source does not read; empty: none is."""
    return f"{window}: {counted(receipt.other_type, 'event')} of another type set aside" if receipt.other_type else ""


def kind_sentence(window: Window, receipt: Receipt) -> str:
    """How many of a window's messages of database changes change no row, by kind; empty: all change one."""
    return f"{window}: besides changes of rows: {kind_words(receipt.kinds)}" if receipt.kinds else ""


def kind_words(kinds: Mapping[str, int]) -> str:
    """Messages by their kind: `2 heartbeats, 1 tombstone`; see `change_rows.KINDS`."""
    return ", ".join(counted(kinds[kind], _KIND_WORDS[kind]) for kind in sorted(kinds))


_KIND_WORDS: Final = {
    "tombstone": "tombstone",
    "heartbeat": "heartbeat",
    "transaction": "transaction message",
    "schema_change": "schema change",
    "logical_message": "logical message",
    "truncate": "truncate",
    "bootstrap": "bootstrap message",
}


def undecodable_sentence(window: Window, receipt: Receipt, sink: Sink | None) -> str:
    """Which of a window's events could not be decoded, and which have keys that no column takes; empty: none."""
    said = []
    if receipt.undecodable:
        quarantined, dropped = (receipt.totals[name] for name in ("quarantined", "dropped"))
        said.append(f"{window}: {undecodable_words(quarantined, dropped)}")
        if quarantined and sink is not None:
            said.append(f"They are next to its rows in {sink.asset_uri}: see `airflow streams quarantine show`")
    if count := receipt.totals.get("unmatched_keys", 0):
        keys, empty = ", ".join(receipt.other_keys), ", ".join(receipt.empty_columns)
        said.append(
            f"{window}: {count:,} JSON objects have keys that no column takes ({keys}), while these columns are empty "
            f"in all of them: {empty}. If a property has another name in JSON, name its key, like {_KEY_NAMED}, and "
            "read the window again with replan=True. refuse_unmatched=True refuses such objects"
        )
    return ". ".join(said)


_KEY_NAMED: Final = "value=Auto('unitPrice double from unit_price')"
