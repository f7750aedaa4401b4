"""What must be after each act of users: tables hold what journals claim of them, and nothing changes by the way."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from sqlalchemy import select

from airflow_provider_streams.errors import LandingMismatch, WindowNotAligned
from airflow_provider_streams.journal import tables
from airflow_provider_streams.journal.landings import StoredLanding
from airflow_provider_streams.journal.runs.run_records import REMOVED, SUPERSEDED
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.lake.parquet.table import ParquetTable
from airflow_provider_streams.model.sinks.landing import Landing
from airflow_provider_streams.model.window.coverage import Coverage, WindowState
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.testing.fake import Truth
from airflow_provider_streams.windows.claim.table_coverage import compare

Rows = dict[int, dict[str, Any]]
Owner = tuple[str, str]
"""Source key and reader."""
_ALL = (datetime(2026, 10, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC))
_DEFAULT_COLUMNS = ("value", "publish_time", "shard", "number")


@dataclass(frozen=True)
class Act:
    """What a user asks for."""

    kind: str
    """`read`, `look` or `backfill`."""
    journal: str
    owner: Owner
    landing: Landing
    window: Window
    """Or the span of a backfill."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    dies: bool = False
    """Or its Spark does: the table may hold unclaimed rows until they are read again."""

    @property
    def table(self) -> Path | None:
        """Where it may change something."""
        return Path(self.landing.sink.path) if self.landing.sink else None

    @property
    def may_leave_rows(self) -> bool:
        """Also those of windows that were planned again, or gave way, for a read that then failed."""
        return self.dies or bool(self.overrides.keys() & {"replan", "overlap", "full_refresh", "select"})


@dataclass(frozen=True)
class Memory:
    """Everything that acts may change, as it is at one moment."""

    owners: dict[str, dict[int, Owner]]
    """By journal and number of the reader."""
    rows: dict[str, dict[str, Rows]]
    """By journal and table of the journal."""
    files: dict[Path, dict[Path, tuple[int, ...]]]
    """By table: each file, and what changes when it is written again."""
    claims: tuple[Claim, ...]
    unclaimed: dict[Path, frozenset[Window]]

    @classmethod
    def of(cls, journals: Mapping[str, Journal], folders: list[Path]) -> Memory:
        """As it is now."""
        owners, rows = {}, {}
        for name, journal in journals.items():
            with journal._database.reading() as connection:
                named = select(tables.readers.c.id, tables.sources.c.source_key, tables.readers.c.reader)
                known = connection.execute(named.where(tables.readers.c.source_id == tables.sources.c.id))
                owners[name] = {row.id: (row.source_key, row.reader) for row in known}
                rows[name] = {
                    table.name: {row["id"]: dict(row) for row in connection.execute(select(table)).mappings()}
                    for table in (tables.landings, tables.pins, tables.runs)
                }
        files = {folder: dict(_files(folder)) for folder in folders}
        seen = tuple(_claims(journals))
        return cls(owners, rows, files, seen, _unclaimed(seen, folders))

    def of_owner(self, journal: str, table: str, owner: Owner) -> Rows:
        """The rows of one reader."""
        owners = self.owners[journal]
        return {n: row for n, row in self.rows[journal][table].items() if owners[row["reader_id"]] == owner}

    def landing(self, act: Act) -> dict[str, Any] | None:
        """The one that counts for who acts."""
        kept = self.of_owner(act.journal, "streams_landings", act.owner).values()
        return max(kept, key=lambda row: int(row["generation"]), default=None)

    def is_landed(self, act: Act) -> bool:
        """Whether a run covered a window under it, or may still do so."""
        kept, runs = self.landing(act), self.of_owner(act.journal, "streams_runs", act.owner).values()
        states = {run["state"] for run in runs if kept is not None and run["landing_id"] == kept["id"]}
        return bool(states & {"covered", "running"})


def _files(folder: Path) -> Iterator[tuple[Path, tuple[int, ...]]]:
    for file in folder.rglob("*"):
        if file.is_file() and "_staging" not in file.parts and file.name != "_table.lock":
            stat = file.stat()
            yield file, (stat.st_ino, stat.st_size, stat.st_mtime_ns)


# What an act may change


def check_act(act: Act, before: Memory, after: Memory, error: Exception | None) -> None:
    """Whatever became of it: it changed nothing of others, and what it was not told to change stayed."""
    _check_others(act, before, after)
    _check_landing(act, before, after)
    left = {folder: after.unclaimed[folder] - before.unclaimed[folder] for folder in after.unclaimed}
    assert act.may_leave_rows or not any(left.values()), f"unclaimed rows: {left}"
    if act.kind == "look":
        assert after.files == before.files
        assert _all(after, act, "streams_landings") == _all(before, act, "streams_landings")
        assert _covered(after) == _covered(before)
    if isinstance(error, LandingMismatch | WindowNotAligned):
        assert after.files == before.files
        assert _counted(after) == _counted(before), "a refusal changed something"
    elif error is not None and act.kind == "read" and not act.overrides and not act.dies:
        _check_failure(act, before, after)


def _check_others(act: Act, before: Memory, after: Memory) -> None:
    for folder, files in after.files.items():
        assert folder == act.table or files == before.files[folder], f"{folder} is not asked for"
    for journal, owners in after.owners.items():
        for owner in owners.values():
            for table in after.rows[journal]:
                mine = (journal, owner) == (act.journal, act.owner)
                assert mine or after.of_owner(journal, table, owner) == before.of_owner(journal, table, owner)


def _check_landing(act: Act, before: Memory, after: Memory) -> None:
    """Something else is landed by an override only, unless nothing was landed so far."""
    kept, now = before.landing(act), after.landing(act)
    if kept is None or now is None or act.overrides.get("full_refresh") or not before.is_landed(act):
        return
    asked = _terms(kept)
    if asked["target"] is None and act.landing.sink is not None:
        return  # a reader that only proved begins to land
    assert _terms(now) == asked
    for name in ("window_schedule", "basis"):
        assert kept[name] is None or now[name] == kept[name]
    is_proving = asked["target"] is None
    assert now["table_id"] == kept["table_id"] or is_proving or not before.files[_folder(asked["target"])], (
        "the table was there"
    )


def _check_failure(act: Act, before: Memory, after: Memory) -> None:
    """A read that failed left its plan and its failed run, and the mark of a new table."""
    for folder, files in after.files.items():
        changed = {path.name for path, stat in files.items() if before.files[folder].get(path) != stat}
        assert changed <= {"_table.json"}
        assert files.keys() >= before.files[folder].keys()
    old, new = (_all(memory, act, "streams_pins") for memory in (before, after))
    assert {n: new.get(n) for n in old} == old
    assert all(_window(new[n]) == act.window for n in new.keys() - old.keys())
    assert len(new) <= len(old) + 1
    _check_failed_run(act, *(_all(memory, act, "streams_runs") for memory in (before, after)))


def _check_failed_run(act: Act, old: Rows, new: Rows) -> None:
    added = [new[n] for n in new.keys() - old.keys()]
    assert [(_window(run), run["state"]) for run in added] in ([], *([(act.window, one)] for one in ("failed", "lost")))
    for number, run in old.items():
        if new[number] != run:
            why = new[number]["error_type"]
            assert (run["state"], why) in (("running", SUPERSEDED), ("covered", REMOVED)), (run, new[number])
            assert why != SUPERSEDED or _window(run) == act.window


def check_landed(act: Act, windows: Iterable[Window], after: Memory) -> None:
    """Windows that are said to have landed: as they were asked for, and they are covered."""
    landed = set(windows)
    if act.table is not None and landed:
        [claim] = [one for one in after.claims if (one.name, one.owner) == (act.journal, act.owner)]
        assert claim.kept.landing is not None
        assert claim.kept.landing.items() >= act.landing.to_json().items()
        assert landed <= {item.window for item in claim.shown.select("covered")}


def _all(memory: Memory, act: Act, table: str) -> Rows:
    return memory.of_owner(act.journal, table, act.owner)


def _counted(memory: Memory) -> dict[str, dict[str, Rows]]:
    """All rows; who backfills with `lookback` counts late rows first, of whatever is covered."""
    return {
        journal: {
            table: {n: {k: v for k, v in row.items() if k != "late_rows"} for n, row in rows.items()}
            for table, rows in by_table.items()
        }
        for journal, by_table in memory.rows.items()
    }


def _covered(memory: Memory) -> set[tuple[str, Owner, Window, str]]:
    """Each window that is covered, and by which plan."""
    found = {(claim.name, claim.owner): claim.known.select("covered") for claim in memory.claims}
    return {(*owner, item.window, item.fingerprint) for owner, items in found.items() for item in items}


def _terms(kept: Mapping[str, Any]) -> dict[str, Any]:
    landing: dict[str, Any] = kept["landing"]
    return {name: landing[name] for name in ("target", "columns", "transform")}


def _folder(target: str | None) -> Path:
    assert target is not None
    return Path(target.removeprefix("file://"))


def _window(row: Mapping[str, Any]) -> Window:
    return Window(row["window_start"], row["window_end"])


# What tables hold


@dataclass(frozen=True)
class Claim:
    """What a journal says of a reader's table."""

    name: str
    journal: Journal
    owner: Owner
    kept: StoredLanding
    known: Coverage
    """By the journal alone."""
    shown: Coverage
    """As the table bears it out: what users see."""
    status: str
    gone: frozenset[Window]

    @property
    def folder(self) -> Path:
        """The table."""
        return _folder(self.kept.target)


def _claims(journals: Mapping[str, Journal]) -> Iterator[Claim]:
    """Of all readers that have a table."""
    for name, journal in journals.items():
        for owner in journal.sources():
            kept = journal.landing(*owner)
            if kept is not None and kept.target is not None:
                known = journal.coverage(*owner, *_ALL)
                shown, view = compare(journal, *owner, known)
                assert view is not None
                yield Claim(name, journal, owner, kept, known, shown, view.status, frozenset(view.gone))


def _unclaimed(seen: tuple[Claim, ...], folders: list[Path]) -> dict[Path, frozenset[Window]]:
    """Windows whose rows lie in a table, and that no journal has as covered there."""
    held = {folder: set(ParquetTable(str(folder)).windows()) for folder in folders}
    for claim in seen:
        if claim.status == "ours":
            covered = {item.window for item in claim.shown.select("covered") if item.run is not None}
            held[claim.folder] -= covered
    return {folder: frozenset(windows) for folder, windows in held.items()}


def check_table(folder: Path) -> None:
    """No event is in it twice, claimed or not."""
    files = folder.glob("window_start=*/window_end=*/*.parquet")
    doubled = [value for value, count in Counter(v for file in files for v in _values(file)).items() if count > 1]
    assert doubled == [], f"{folder}: {doubled[:3]}"


def check_claim(claim: Claim, truth: Truth) -> None:
    """A table holds exactly what is claimed of it; its state and what it lacks are reported."""
    table = ParquetTable(str(claim.folder))
    status, held = _look(claim, table)
    assert claim.status == status
    covered = [item for item in claim.known.select("covered") if item.run is not None]
    assert claim.gone == {item.window for item in covered} - held
    assert all(not a.window.overlaps(b.window) for a, b in pairwise(covered))
    shown = claim.shown.select("covered")
    for item in shown:
        if item.run is not None:
            _check_window(claim, table, item, truth)
        else:
            assert any(one.run and one.fingerprint == item.fingerprint for one in shown), f"read with nothing: {item}"
    states = {item.window: item.state for item in claim.shown.windows}
    for window in held - {item.window for item in covered}:
        assert states.get(window) != "covered", window
        assert claim.journal.runs(*claim.owner, window), f"{window} was never read"


def _look(claim: Claim, table: ParquetTable) -> tuple[str, set[Window]]:
    """How the table stands, by its own file."""
    mark = table.root / "_table.json"
    if not mark.exists():
        return "absent", set()
    said = json.loads(mark.read_text())
    table_id = said.pop("id")
    said.pop("longest_window_seconds", None)
    if said != dict(zip(("source", "reader"), claim.owner, strict=True)):
        return "foreign", set()
    if table_id != claim.kept.table_id:
        is_left = table_id in claim.kept.earlier and claim.journal.last_covered(*claim.owner) is None
        return ("earlier" if is_left else "foreign"), set()
    return "ours", set(table.windows())


def _check_window(claim: Claim, table: ParquetTable, item: WindowState, truth: Truth) -> None:
    folder = table.folder_of(item.window)
    proof = json.loads((folder / "_receipt.json").read_text())
    assert (proof["fingerprint"], proof["rows"]) == (item.fingerprint, item.rows)
    rows = _rows(folder)
    assert len(rows) == item.rows, item
    names = claim.kept.landing["columns"] if claim.kept.landing else None
    assert {_names(file) for file in folder.glob("*.parquet")} == {tuple(names or _DEFAULT_COLUMNS)}
    _check_ranges(claim, item, rows)
    if claim.kept.basis == "publish":
        _check_times(item, rows, truth)


def _check_ranges(claim: Claim, item: WindowState, rows: set[tuple[int, int]]) -> None:
    """All events that were read are in the plan's ranges; a chain reads all events of its ranges."""
    plan = claim.journal.pinned(*claim.owner, item.window)
    assert plan is not None
    assert plan.fingerprint == item.fingerprint
    planned = {
        (int(one.shard.rpartition("-")[2]), number)
        for one in plan.ranges
        for number in range(one.start.parts[0], one.end.parts[0])
    }
    assert rows <= planned
    if claim.kept.basis == "chained" and not item.cause:
        assert rows == planned


def _check_times(item: WindowState, rows: set[tuple[int, int]], truth: Truth) -> None:
    """Everything that was published in the window is there but for what came late; and nothing else."""
    window = item.window
    published = {n for n in range(truth.events) if window.start <= truth.time_of(n) < window.end}
    late = {n for n in published if truth.stored_at(n) >= window.end}
    for shard in range(truth.shards):
        read = {number for one, number in rows if one == shard}
        assert read <= published, (window, shard)
        assert item.cause or published - late <= read, (window, shard)


def _rows(folder: Path) -> set[tuple[int, int]]:
    """Shard and number of each event in a window's folder."""
    values = [value for file in folder.glob("*.parquet") for value in _values(file)]
    texts = [value.decode().rstrip(".").rpartition("-")[2].split(":") for value in values]
    rows = {(int(shard), int(number)) for shard, number in texts}
    assert len(rows) == len(values)
    return rows


def _values(file: Path) -> tuple[bytes, ...]:
    return _read(file, file.stat().st_ino, file.stat().st_mtime_ns)[1]


def _names(file: Path) -> tuple[str, ...]:
    return _read(file, file.stat().st_ino, file.stat().st_mtime_ns)[0]


@lru_cache(maxsize=500)
def _read(file: Path, _inode: int, _written: int) -> tuple[tuple[str, ...], tuple[bytes, ...]]:
    table = pq.ParquetFile(file).read()
    return tuple(table.column_names), tuple(table["value"].to_pylist())
