"""Random lives of a topic, with tail observations at random moments.

No verdict covers what a tail observation contradicts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from secrets import token_hex

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.tail_observation import TailObservation, relevant
from airflow_provider_streams.model.window.window import EPOCH, Window
from airflow_provider_streams.systems.pulsar.client.admin.responses import (
    EntryId,
    InternalInfo,
    InternalStats,
    Ledger,
    LedgerInfo,
    Retention,
)
from airflow_provider_streams.systems.pulsar.metadata.ledgers import EARLIEST, Layout
from airflow_provider_streams.systems.pulsar.planning.shard_evidence import Evidence, seen_by_shard
from airflow_provider_streams.systems.pulsar.planning.start_verification import (
    Doubt,
    doubt_at_head,
    doubt_in_window,
    doubt_since_position,
)
from tests.unit.systems.pulsar.cluster import EPOCH_MS, at_ms

NAME = "persistent://public/default/t"
NEVER = EntryId(-1, -1)
START, MINUTE, HOUR, DAY = at_ms(EPOCH_MS), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
FOREVER = Retention(None, None)
ZERO = timedelta(0)
LATEST = datetime.max.replace(tzinfo=UTC)


@dataclass(eq=False)
class Entry:
    """One entry, and when it was stored, which is when it was published."""

    at: datetime
    until: datetime | None = None
    """When it was removed; None: it is held."""

    @property
    def held(self) -> bool:
        return self.until is None

    def was_held(self, moment: datetime) -> bool:
        return self.at < moment and (self.until is None or moment < self.until)


@dataclass
class Life:
    """A topic to which things happen, one a minute, as a broker keeps its ledgers."""

    now: datetime = START
    after_each_look: Callable[[TailObservation], object] = id
    ledgers: dict[int, list[Entry]] | None = None
    entries: list[Entry] = field(default_factory=list)
    """All that were ever stored."""
    looks: list[TailObservation] = field(default_factory=list)
    number: int = 7
    last: EntryId = NEVER
    created: datetime = START
    modified: datetime = START
    version: int = 0

    def __post_init__(self) -> None:
        self.create()

    def create(self) -> None:
        if self.ledgers is None:
            self.ledgers, self.created, self.version = {}, self.now, 0
            self.roll()
            self.last = EntryId(self.number, -1)

    def write(self) -> None:
        if self.ledgers is not None:
            entry = Entry(self.now)
            ledger = list(self.ledgers)[-1]
            self.ledgers[ledger].append(entry)
            self.entries.append(entry)
            self.last = EntryId(ledger, len(self.ledgers[ledger]) - 1)

    def roll(self) -> None:
        if self.ledgers is not None:
            self.number += 1
            self.ledgers[self.number] = []
            self._change()

    def reload(self) -> None:
        """Another broker takes the topic: it opens a ledger, and an empty one that was open goes."""
        if self.ledgers is not None:
            newest = list(self.ledgers)[-1]
            if not self.ledgers[newest]:
                del self.ledgers[newest]
            self.roll()
            filled = [(ledger, len(stored) - 1) for ledger, stored in self.ledgers.items() if stored]
            self.last = EntryId(*filled[-1]) if filled else EntryId(self.number, -1)

    def trim(self) -> None:
        if self.ledgers is not None and len(self.ledgers) > 1:
            self._remove(self.ledgers.pop(next(iter(self.ledgers))))
            self._change()

    def truncate(self) -> None:
        self.roll()
        while self.ledgers is not None and len(self.ledgers) > 1:
            self.trim()

    def delete(self) -> None:
        for stored in (self.ledgers or {}).values():
            self._remove(stored)
        self.ledgers = None

    def look(self) -> None:
        stats, info = self.stats, self.info
        layout = Layout.of(stats)
        incarnation = ((NAME, info.created.isoformat()),) if info and info.created else ()
        empty = frozenset([NAME]) if stats and layout.is_empty else frozenset[str]()
        self.looks.append(TailObservation(self.now, Cut({NAME: layout.end}), incarnation, empty))
        self.after_each_look(self.looks[-1])

    def _remove(self, stored: list[Entry]) -> None:
        for entry in stored:
            entry.until = self.now

    def _change(self) -> None:
        self.version, self.modified = self.version + 1, self.now

    @property
    def stats(self) -> InternalStats | None:
        if self.ledgers is None:
            return None
        rows = tuple(Ledger(ledger, len(stored), len(stored)) for ledger, stored in self.ledgers.items())
        return InternalStats(rows, self.last, "LedgerOpened", last_ledger_created=self.modified)

    @property
    def info(self) -> InternalInfo | None:
        if self.ledgers is None:
            return None
        rows = tuple(LedgerInfo(ledger, None) for ledger in self.ledgers)
        return InternalInfo(self.version, self.created, self.modified, rows, frozenset())

    def evidence(self, before: datetime, until: datetime = LATEST) -> Evidence:
        """With the tail observations that the journal gives a window, had it kept all of them.

        The last before it, those in it, and the first after.
        """
        told = relevant(self.looks, before)
        later = [one for one in told if one.at >= until][:1]
        return self.evidence_of([*(one for one in told if one.at < until), *later])

    def evidence_of(self, looks: Iterable[TailObservation]) -> Evidence:
        """With these tail observations."""
        seen = seen_by_shard(looks).get(NAME, ())
        first = next((entry.at for entry in self.entries if entry.held), None)
        return Evidence(NAME, self.stats, self.info, FOREVER, first, seen)


STEPS = ("write", "write", "write", "look", "look", "roll", "reload", "trim", "truncate", "delete", "create")


def lived(steps: list[str]) -> Life:
    incarnation = Life()
    for step in steps:
        incarnation.now += MINUTE
        getattr(incarnation, step)()
    incarnation.now += MINUTE
    return incarnation


def saw_entries(seen: TailObservation) -> bool:
    return seen.tail[NAME] > EARLIEST and NAME not in (seen.empty or ())


def must_be_lost(incarnation: Life, window: Window) -> bool:
    """Whether an entry of the window is gone.

    With all that a tail observation saw or after one in the window saw entries.
    """
    gone = [entry for entry in incarnation.entries if not entry.held and window.start <= entry.at < window.end]
    for look in (one for one in incarnation.looks if one.at >= window.start and saw_entries(one)):
        saw = [entry for entry in incarnation.entries if entry.was_held(look.at)]
        if any(look.at < entry.at for entry in gone) or (
            any(one in gone for one in saw) and not any(one.held for one in saw)
        ):
            return True
    return False


def may_be_lost(incarnation: Life, window: Window) -> bool:
    """Whether a tail observation saw something that is gone, and not only what came later."""
    looks = [one for one in incarnation.looks if one.tail[NAME] > EARLIEST]
    before = {one.tail[NAME] for one in looks if one.at <= window.start}
    if any(one.tail[NAME] in before for one in looks if one.at >= window.end):
        return False
    looks = [one for one in looks if datetime.fromisoformat(dict(one.incarnation)[NAME]) < window.end]
    now = incarnation.info.created if incarnation.info else None
    is_ended = any(one.at < now for one in looks) if now else bool(looks)
    newest = max((one.at for one in looks), default=None)
    return is_ended or any(
        not entry.held and newest is not None and entry.at <= newest for entry in incarnation.entries
    )


def check(incarnation: Life, window: Window, doubt: Doubt | None) -> None:
    gone = [entry for entry in incarnation.entries if not entry.held and window.start <= entry.at < window.end]
    if doubt is None:
        first = [one.at for one in relevant(incarnation.looks, window.start) if one.tail[NAME] > EARLIEST][:1]
        assert incarnation.ledgers is not None or not gone
        # of an earlier incarnation that was not seen, nothing is left that could tell
        assert not [entry for entry in gone if incarnation.ledgers is not None and entry.at >= incarnation.created]
        assert not [entry for entry in gone if first and entry.at >= first[0]]
    if must_be_lost(incarnation, window):
        assert doubt is not None
        assert doubt.is_lost
    if doubt is not None and doubt.is_lost:
        assert may_be_lost(incarnation, window)


steps = st.lists(st.sampled_from(STEPS), max_size=25)
moments = st.integers(-3, 28)


@given(steps, moments, st.integers(1, 30))
@example(["write", "look", "write", "truncate", "write"], 0, 30)
@example(["write", "look", "write", "delete"], 0, 30)
@example(["write", "look", "write", "delete", "create"], 0, 30)
@example(["look", "delete", "look", "create"], 3, 30)
@example(["look", "write", "look", "delete"], 0, 2)
@example(["write", "look", "truncate", "write"], 0, 1)
@example(["write", "look", "look", "delete"], 2, 1)
@example(["write", "look", "truncate"], 0, 30)
@example(["write", "look", "look", "truncate"], 2, 1)
@example(["write", "look", "truncate", "look"], 2, 5)
@example(["delete", "create", "write", "look", "truncate"], 0, 1)
def test_no_verdict_of_a_window_covers_what_a_sighting_contradicts(steps, start, length):
    incarnation = lived(steps)
    window = Window(START + start * MINUTE, START + (start + length) * MINUTE)
    older = any(entry.held and entry.at < window.start for entry in incarnation.entries)
    evidence = incarnation.evidence(window.start, window.end)
    check(incarnation, window, doubt_in_window(evidence, window, ZERO, older_is_held=older))
    check(incarnation, window, doubt_at_head(evidence, window))


@given(steps, st.integers(0, 25))
@example(["look", "write", "look", "write", "truncate", "write"], 1)
def test_no_verdict_of_a_range_from_a_position_on_covers_what_a_sighting_contradicts(steps, cut):
    incarnation = lived(steps[:cut])
    if incarnation.ledgers is None:
        return
    start, taken, made = Layout.of(incarnation.stats).end, incarnation.now, incarnation.created
    for step in steps[cut:]:
        incarnation.now += MINUTE
        getattr(incarnation, step)()
    doubt = doubt_since_position(incarnation.evidence(taken), start, taken)
    gone = [entry.at for entry in incarnation.entries if not entry.held and entry.at > taken]
    assert not gone or doubt is not None
    if any(
        taken < one.at < at and saw_entries(one) and one.tail[NAME] > start for one in incarnation.looks for at in gone
    ):
        assert doubt is not None
        assert doubt.is_lost
    if doubt is None:
        assert incarnation.created == made or not gone


LEAPS = {"wait": timedelta(minutes=3), "wait_hours": timedelta(hours=7), "wait_days": timedelta(days=9)}


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    with Journal.open(f"sqlite:///{tmp_path_factory.mktemp('journal') / 'journal.db'}") as opened:
        yield opened


@given(st.lists(st.sampled_from((*STEPS, *LEAPS)), max_size=25), st.floats(0, 1), st.integers(1, 6))
def test_what_the_journal_keeps_of_the_sightings_is_enough(journal, steps, place, length):
    """Of windows that begin and end at full minutes, hours or days, the older the fewer."""
    key = token_hex(8)
    incarnation = Life(after_each_look=lambda seen: journal.note_tail_observation(key, seen))
    for step in steps:
        incarnation.now += LEAPS.get(step, MINUTE)
        getattr(incarnation, step, lambda: None)()
    incarnation.now += MINUTE
    start = START + place * (incarnation.now - START)
    stretch = spacing(incarnation.now - start + DAY)
    start = EPOCH + (start - EPOCH) // stretch * stretch
    window = Window(start, start + length * stretch)
    older = any(entry.held and entry.at < window.start for entry in incarnation.entries)
    evidence = incarnation.evidence_of(journal.tail_observations_around(key, window.start, window.end))
    check(incarnation, window, doubt_in_window(evidence, window, ZERO, older_is_held=older))
    check(incarnation, window, doubt_at_head(evidence, window))


def spacing(age: timedelta) -> timedelta:
    """How far apart the sightings of that age are kept."""
    return DAY if age > 30 * DAY else HOUR if age > 2 * DAY else 5 * MINUTE
