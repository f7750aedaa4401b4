"""A window's changes merged into files that are sorted by key: each file whose range has a change is written again.

Files of a table hold disjoint ranges of the first key. A range is read, merged and written alone, so memory holds the
largest range that has a change, its changes, and its markers, whatever the size of the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from airflow_provider_streams.lake.changes.arrow_compute import array, pc
from airflow_provider_streams.lake.changes.key_groups import Numbers, groups
from airflow_provider_streams.lake.changes.latest_and_history import Application
from airflow_provider_streams.lake.changes.marker_files import MOST_FILES, MarkerFiles, MarkerList
from airflow_provider_streams.lake.changes.sortable_text import sortable

RANGE_BYTES: Final = 64 * 1024 * 1024
"""Of a file's rows in memory. A file has more only if one value of the first key has."""

F = TypeVar("F")
F_contra = TypeVar("F_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class KeyRange(Generic[F]):
    """Files with neighbouring keys, whose ranges may overlap each other but no other file's."""

    low: str
    """A sortable text: no key of these files is below it, and none of the ranges before reaches it."""
    files: tuple[F, ...]


@dataclass(frozen=True)
class Rewrite(Generic[F]):
    """New rows for a range."""

    old: tuple[F, ...]
    low: str | None
    """Of the range; None: the table has no range yet."""
    chunks: list[pa.Table]
    """The rows of new files, in the order of their keys."""


class RangeReader(Protocol[F_contra]):
    """Reads the rows of files of a table."""

    def __call__(self, files: Sequence[F_contra]) -> pa.Table:
        """The rows, in the schema of the application."""


@dataclass
class Merging(Generic[F]):
    """One attempt to merge a state into the ranges of a table, as they are now."""

    application: Application[Any]
    ranges: Sequence[KeyRange[F]]
    """In the order of their keys."""
    read: RangeReader[F]
    markers: MarkerFiles
    range_bytes: int = RANGE_BYTES

    def __post_init__(self) -> None:
        self._new_markers: list[pa.Table] = []

    @property
    def _keys(self) -> tuple[str, ...]:
        return self.application.rules.keys

    def rewrites(self, state: Any) -> Iterator[Rewrite[F]]:
        """The ranges whose rows change, one after the other. Afterwards, `list_of_markers` knows the new markers."""
        application, key = self.application, self._keys[0]
        lows = [one.low for one in self.ranges]
        tables = application.tables(state)
        found = [_range_of(key, one, lows) for one in tables]
        touched = np.unique(np.concatenate(found))
        if application.empties(state):
            touched = np.arange(max(len(lows), 1))
        self._new_markers = [application.global_markers(state)]
        for number in touched.tolist():
            parts = [one.filter(array(at == number)) for one, at in zip(tables, found, strict=True)]
            files = self.ranges[number].files if self.ranges else ()
            merged = self._merged(files, application.part(state, parts), everything=application.empties(state))
            if merged is not None:
                yield Rewrite(files, lows[number] if lows else None, self._chunks(merged))

    def list_of_markers(self, holes: Iterable[str] | None, resent_from: str | None = None) -> MarkerList:
        """The table's markers after the merge, without those that no hole needs. None: all of them stay."""
        key = next(iter(self._keys), "")  # a window without changes may not know it
        new = pa.concat_tables([self.application.marker_schema.empty_table(), *self._new_markers])
        if holes is None and len(self.markers.list.files) < MOST_FILES:
            return self.markers.added(new, key)
        held = self.markers.read(self.application.marker_schema)
        every = pa.concat_tables([held, self._unknown_of(new, held)])
        kept = every if holes is None else self.application.kept(every, holes, resent_from)
        if len(kept) == len(held) and len(every) == len(held) and len(self.markers.list.files) < MOST_FILES:
            return self.markers.list
        return self.markers.rewritten(kept, key)

    def _merged(self, files: tuple[F, ...], state: Any, *, everything: bool) -> pa.Table | None:
        """The rows of a range after the merge, in the order of their keys; None: none of them changes."""
        application = self.application
        rows = self.read(files) if files else application.row_schema.empty_table()
        tables = application.tables(state)
        wanted = pa.concat_tables([one.select(list(self._keys)) for one in tables])
        held = self._markers_near(wanted, rows if everything else None)
        is_mine = np.ones(len(rows), bool) if everything else _is_among(rows, wanted, self._keys)
        of_key, cuts = self._by_key(held)
        if not everything:
            of_key = of_key.filter(array(_is_among(of_key, wanted, self._keys)))
        mine = rows.filter(array(is_mine))
        new, markers = application.apply((mine, pa.concat_tables([of_key, cuts])), state)
        self._new_markers.append(self._unknown(markers, of_key))
        if _same_rows(mine, new, self._keys):
            return None
        every = pa.concat_tables([rows.filter(array(~is_mine)), new.cast(rows.schema)])
        return every.sort_by([(name, "ascending") for name in self._keys])

    def _markers_near(self, wanted: pa.Table, rows: pa.Table | None) -> pa.Table:
        key, schema = self._keys[0], self.application.marker_schema
        if rows is not None or not self.markers.list.files or not len(wanted):
            return self.markers.read(schema)
        bounds = pc.min_max(wanted[key])
        return self.markers.read(schema, key, bounds["min"], bounds["max"])

    def _unknown(self, markers: pa.Table, known: pa.Table) -> pa.Table:
        """The markers that are not among known ones. All of them have keys, or none."""
        if not len(markers) or not len(known):
            return markers
        return markers.filter(pc.invert(pc.is_in(self._identity(markers), self._identity(known))))

    def _unknown_of(self, markers: pa.Table, known: pa.Table) -> pa.Table:
        """As `_unknown`, with truncates."""
        (own, own_cuts), (held, held_cuts) = (self._by_key(one) for one in (markers, known))
        return pa.concat_tables([self._unknown(own, held), self._unknown(own_cuts, held_cuts)])

    def _by_key(self, markers: pa.Table) -> tuple[pa.Table, pa.Table]:
        has_key = markers[self._keys[0]].is_valid()
        return markers.filter(has_key), markers.filter(pc.invert(has_key))

    def _identity(self, markers: pa.Table) -> Any:
        """One text for each marker."""
        parts: list[Any] = [pc.fill_null(markers[name], "") for name in self.application.marker_identity]
        if not markers[self._keys[0]].null_count:
            parts += [sortable(name, markers[name]) for name in self._keys]
        return pc.binary_join_element_wise(*parts, "\n")

    def _chunks(self, rows: pa.Table) -> list[pa.Table]:
        """The rows of each new file. No value of the first key is in two files."""
        if rows.nbytes <= self.range_bytes:
            return [rows] if len(rows) else []
        at_once = max(len(rows) * self.range_bytes // rows.nbytes, 1)
        group = groups(rows, self._keys[:1])
        edges = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
        cuts = edges[np.unique(np.searchsorted(edges, np.arange(0, len(rows), at_once)).clip(max=len(edges) - 1))]
        ends = [*cuts[1:].tolist(), len(rows)]
        return [rows.slice(start, end - start) for start, end in zip(cuts.tolist(), ends, strict=True)]


def low_of(rows: pa.Table, key: str) -> str:
    """The sortable text of the first row's key."""
    return str(sortable(key, rows[key].slice(0, 1))[0].as_py())


def disjoint(files: Iterable[tuple[str | None, str | None, F]]) -> list[KeyRange[F]]:
    """Ranges of files, given with their least and greatest key as sortable texts; None: not known."""
    files = list(files)
    if any(low is None or high is None for low, high, _ in files):
        return [KeyRange("", tuple(one for _, _, one in files))]
    found: list[KeyRange[F]] = []
    reached = ""
    for low, high, file in sorted(files, key=lambda one: one[0] or ""):
        if found and (low or "") <= reached:
            found[-1] = KeyRange(found[-1].low, (*found[-1].files, file))
        else:
            found.append(KeyRange(low or "", (file,)))
        reached = max(reached, high or "")
    return found


def _range_of(key: str, rows: pa.Table, lows: Sequence[str]) -> Numbers:
    """The number of each row's range. Keys below the first range are of the first one."""
    if len(lows) < 2 or not len(rows):  # noqa: PLR2004 - there is nothing to choose from
        return np.zeros(len(rows), np.int64)
    encoded: Any = rows[key].combine_chunks().dictionary_encode()
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    texts = sortable(key, pa.chunked_array([encoded.dictionary])).combine_chunks()
    ranks = pc.rank(pa.concat_arrays([texts, array(lows, pa.string())]), tiebreaker="dense").to_numpy().astype(np.int64)
    of_value = np.searchsorted(ranks[len(texts) :], ranks[: len(texts)], side="right") - 1
    return np.asarray(of_value.clip(min=0)[encoded.indices.to_numpy()])


def _is_among(rows: pa.Table, wanted: pa.Table, keys: Sequence[str]) -> Numbers:
    """Whether each row's key is one of these."""
    if len(keys) == 1:
        found = pc.is_in(rows[keys[0]], wanted[keys[0]].combine_chunks()).to_numpy()
        return np.asarray(found.astype(bool))
    group = groups(pa.concat_tables([rows.select(list(keys)), wanted.select(list(keys))]), keys)
    asked = np.zeros(int(group.max(initial=-1)) + 1, bool)
    asked[group[len(rows) :]] = True
    return np.asarray(asked[group[: len(rows)]])


def _same_rows(old: pa.Table, new: pa.Table, keys: Sequence[str]) -> bool:
    if len(old) != len(new):
        return False
    order = [
        (name, "ascending") for name in (*keys, *(name for name in old.column_names if name.startswith("__START")))
    ]
    sortable_order: Any = [one for one in order if not pa.types.is_struct(old.schema.field(one[0]).type)]
    return bool(old.sort_by(sortable_order).equals(new.cast(old.schema).sort_by(sortable_order)))
