"""A table that is a folder: whose it is, which windows it holds, and how one of them is replaced.

    <path>/_table.json                                             see `mark_file`
    <path>/window_start=20261120T100000Z/window_end=20261120T110000Z/*.parquet
    <path>/window_start=../window_end=../_quarantine/*.quarantine  its events that cannot be decoded
    <path>/_columns                                                see `Columns`
    <path>/_staging/                                               files that are being written
    <path>/_set_aside/<table>.aside/                               what was landed under an earlier mark

Only committed files are called `*.parquet`, for some engines also read names that begin with an underscore: see
`hidden_files`.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.fs as pafs

from airflow_provider_streams.errors import InvalidWindow, SinkError, TableOwnedByOther
from airflow_provider_streams.lake.columns import WINDOW_COLUMNS, window_folder
from airflow_provider_streams.lake.folder_overlap import check_mounted, check_outside, sign_around
from airflow_provider_streams.lake.parquet.atomic_rename import flush, replace_folder
from airflow_provider_streams.lake.parquet.hidden_files import ASIDE, exchange_folder, hide, ready_to_exchange
from airflow_provider_streams.lake.parquet.mark_file import DRAFT, MARK, Marked, read_mark, write_mark
from airflow_provider_streams.lake.parquet.overlap_replacement import recover_replacement, taken_out
from airflow_provider_streams.lake.parquet.type_widening import COLUMNS, NEXT, Columns, TargetOf
from airflow_provider_streams.lake.process_lock import open_lock, wait_for_lock
from airflow_provider_streams.lake.storage_errors import errors_at
from airflow_provider_streams.lake.table_properties import check_owner, in_the_way
from airflow_provider_streams.model.sinks.landing import TableMark, TableState, TableTerms
from airflow_provider_streams.model.window.window import Window, moment_label, moment_of_label

_TIME_BEGINS = datetime.min.replace(tzinfo=UTC)

QUARANTINE = "_quarantine"
"""The folder of a window's undecodable events, replaced with its rows."""

PROOF = "_receipt.json"
"""In a window's folder: the plan that it was read by, and its rows."""

_LOCK = "_table.lock"
_STAGING = "_staging"
_SET_ASIDE = "_set_aside"
_OURS = (MARK, DRAFT, _LOCK, _STAGING, _SET_ASIDE, COLUMNS, NEXT, f"{COLUMNS}.draft")


class ParquetTable:
    """One table."""

    def __init__(self, path: str) -> None:
        self.root = Path(path)
        self.staging = self.root / _STAGING
        self.columns = Columns(self)
        self.set_aside = self.root / _SET_ASIDE
        self.exchange = exchange_folder(self.root)

    def folder_of(self, window: Window) -> Path:
        """Where a window's files are."""
        return self.root / window_folder(window)

    def state(self, near: Window | None = None) -> TableState | None:
        """Its owner and windows, or those near one; None: there is no table.

        Raises:
            TableOwnedByOther: it holds data, and names no owner.
            SinkError: the folder around it is not here, so this cannot be known.
        """
        found = read_mark(self.root)
        if found is None:
            check_mounted(str(self.root), self.root)
            with errors_at(str(self.root), "the folder cannot be read"):
                self._refuse_others()
            return None
        return TableState(found.mark, frozenset(self.windows() if near is None else self.windows_near(near)))

    def windows(self) -> Iterator[Window]:
        """The windows that it holds."""
        for name in _names(self.root, WINDOW_COLUMNS[0]):
            yield from self._windows_in(name)

    def windows_near(self, window: Window) -> Iterator[Window]:
        """The windows that begin within one, or before it by no more than the longest window's length.

        All windows that share time with it are among them, if each landed here or is no longer than one that did. So a
        landing does not look into the folders of all windows.
        """
        names = _names(self.root, WINDOW_COLUMNS[0])  # first: a longer window is noted before its folder is there
        found = read_mark(self.root)
        longest = None if found is None else found.longest
        earliest = "" if longest is None else _start_name(window.start - min(longest, window.start - _TIME_BEGINS))
        end = _start_name(window.end)
        for name in names:
            if earliest <= _in_order(name) < end:
                yield from self._windows_in(name)

    def _windows_in(self, name: str) -> Iterator[Window]:
        """The windows in the folder of a start."""
        first, last = WINDOW_COLUMNS
        start = moment_of_label(name.removeprefix(f"{first}="))
        for below in _names(self.root / name, last) if start is not None else ():
            end = moment_of_label(below.removeprefix(f"{last}="))
            with suppress(InvalidWindow):
                # a window without rows has a file as well
                if start is not None and end is not None and any((self.root / name / below).glob("*.parquet")):
                    yield Window(start, end)

    def claim(self, terms: TableTerms) -> None:
        """Make it, with the reader's mark; or check that it bears that mark, or may get it. Sets nothing aside yet.

        Raises:
            TableOwnedByOther: it is another reader's, or holds data and names no owner.
            SinkError: the folder cannot be made or read.
        """
        with errors_at(str(self.root), "the folder cannot be used"):
            self.make_staging(terms)
            try:
                self._claim(terms)
            except FileNotFoundError:  # another attempt failed just now, and removed the folders that it had made
                self.make_staging(terms)
                self._claim(terms)

    def _claim(self, terms: TableTerms) -> None:
        with self._locked():
            self._owner(terms)

    def make_staging(self, terms: TableTerms) -> list[Path]:
        """Make the folder of files that are being written. Checks and raises as `claim`, and writes no mark.

        Returns:
            the folders that were not there yet, the innermost first; see `remove_unclaimed`.
        """
        with errors_at(str(self.root), "the folder cannot be used"):
            if (found := read_mark(self.root)) is None:
                self._refuse_others()  # before we put anything into a folder that is not ours
            else:
                check_owner(str(self.root), found.mark, terms, _SET_ASIDE)
            lacking = [folder for folder in (self.staging, *self.staging.parents) if not folder.exists()]
            self.staging.mkdir(parents=True, exist_ok=True)
        return lacking

    def remove_unclaimed(self, made: Iterable[Path]) -> None:
        """Remove folders that `make_staging` made, as long as nothing is in them: no attempt claimed the table."""
        with suppress(OSError):
            for folder in made:
                folder.rmdir()

    def put(
        self,
        staged: Path,
        window: Window,
        terms: TableTerms,
        target_of: TargetOf,
        *,
        held: FolderHandle | None = None,
    ) -> None:
        """Make a staged folder the window's, in one step, and remove the windows that share time with it.

        Args:
            staged: the folder.
            window: whose it becomes.
            terms: whose the table must be; what was landed under an earlier mark is set aside, if it may be.
            target_of: how to write files, if other windows must be rewritten.
            held: the folder that must still be the window's; None: any.

        Raises:
            SinkError: another folder is the window's by now.
            TableOwnedByOther: it became another reader's meanwhile.
            WindowsOverlap: other windows share time with it, and must stay.
            OSError: the window is what it was, or was set aside.
        """
        with self._locked():
            found = self._owner(terms)
            if found.mark != terms.mark:
                flush(staged)  # first, for a disk may refuse it
                self._set_aside(found.mark)
                self.columns.forget()
                found = replace(found, mark=terms.mark)
                write_mark(self.root, found)
            if held is not None and not held.is_at(self.folder_of(window)):
                raise SinkError(
                    str(self.root), f"window {window} was landed again by another run meanwhile: do it once more"
                )
            others = in_the_way(window, self.windows_near(window), terms)
            self._note_length(found, window)
            self.columns.fit(staged, target_of, [window, *others])
            with ready_to_exchange(staged, self.exchange) as ready, taken_out(self, ready, others):
                _replace(ready, self.folder_of(window))

    def put_in_place(self, staged: Path, folder: Path) -> None:
        """Make a staged folder a window's, in one step. Requires the table's lock."""
        with ready_to_exchange(staged, self.exchange) as ready:
            _replace(ready, folder)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes from changing its windows, if the file system has locks."""
        descriptor = open_lock(self.root / _LOCK)
        try:
            wait_for_lock(descriptor)
            yield
        finally:
            os.close(descriptor)

    def _owner(self, terms: TableTerms) -> Marked:
        """Its mark: the terms' own, which a table without a mark gets, or an earlier one that gives way to it."""
        recover_replacement(self)
        found = read_mark(self.root)
        if found is None:
            self._refuse_others()
            found = Marked(terms.mark)
            write_mark(self.root, found)
        check_owner(str(self.root), found.mark, terms, _SET_ASIDE)
        return found

    def _note_length(self, found: Marked, window: Window) -> None:
        """Note a window that is longer than all before, if that is known; otherwise look at all that are here."""
        here = [window] if found.longest is not None else [window, *self.windows()]
        noted = found.holding(max(one.end - one.start for one in here))
        if noted != found:
            write_mark(self.root, noted)

    def _refuse_others(self) -> None:
        """Check that a new table has its folder for itself: engines read all that is below a folder."""
        check_outside(str(self.root), sign_around(pafs.LocalFileSystem(), str(self.root.resolve())))
        found = self.root.iterdir() if self.root.exists() else ()
        entries = [entry for entry in found if entry.name not in _OURS]
        windows = [entry for entry in entries if entry.name.startswith(f"{WINDOW_COLUMNS[0]}=")]
        below = (file for entry in entries for file in (entry, *entry.rglob("*")))
        files = (file for file in below if file.is_file() or file.is_symlink())  # a link may lead to another table
        data = next(iter(windows), None) or next(files, None)
        if data is not None:
            raise TableOwnedByOther(
                str(self.root),
                f"the folder holds {data.relative_to(self.root)}, and no {MARK} says whose that is. A table has one "
                "owner: move it away, or land in another folder",
            )

    def _set_aside(self, mark: TableMark) -> None:
        """Hide all windows from readers, and keep them: the stream may not hold their events any more.

        The mark stays until another replaces it, so the next attempt after a kill finds it, with the windows left.
        """
        for part in list(self.root.glob(f"{WINDOW_COLUMNS[0]}=*")):
            hide(part, ASIDE)
            part.rename(self._room_aside(mark, part.name) / part.name)
        shutil.copy(self.root / MARK, self._room_aside(mark, MARK) / MARK)

    def _room_aside(self, mark: TableMark, name: str) -> Path:
        """A folder for what was landed under a mark; another one if it has such a window already."""
        ids = (f"{mark.id}.{number}" if number else mark.id for number in itertools.count())
        rooms = (self.set_aside / f"{each}{ASIDE}" for each in ids)
        folder = next(one for one in rooms if not (one / name).exists())
        folder.mkdir(parents=True, exist_ok=True)
        return folder


class FolderHandle:
    """An open folder, which differs from any later one of its name. `FileNotFoundError`: there is none."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)

    def is_at(self, path: Path) -> bool:
        """Whether a path is this folder."""
        try:
            return os.path.samestat(os.fstat(self._descriptor), path.stat())
        except OSError:
            return False

    def close(self) -> None:
        """From now on, a later folder may look like it."""
        os.close(self._descriptor)


def _replace(ready: Path, folder: Path) -> None:
    folder.parent.mkdir(exist_ok=True)
    replace_folder(ready, folder)


def _names(folder: Path, column: str) -> list[str]:
    """The folders of a partition column."""
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if entry.name.startswith(f"{column}=")]
    except FileNotFoundError:
        return []


def _start_name(moment: datetime) -> str:
    return _in_order(f"{WINDOW_COLUMNS[0]}={moment_label(moment)}")


def _in_order(name: str) -> str:
    """What sorts like the time in a folder's name: `..00.5Z` is after `..00Z`."""
    return name.removesuffix("Z")
