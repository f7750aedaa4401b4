"""A table that is a folder: whose it is, which windows it holds, and how one of them is replaced.

    <path>/_table.json                                             whose it is
    <path>/window_start=20261120T100000Z/window_end=20261120T110000Z/*.parquet
    <path>/window_start=../window_end=../_quarantine/*.quarantine  its events that cannot be decoded
    <path>/_columns                                                see `Columns`
    <path>/_staging/                                               files that are being written
    <path>/_set_aside/<table>.aside/                               what was landed under an earlier mark

Only committed files are called `*.parquet`, for some engines also read names that begin with an underscore: see
`file_names`.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow.fs as pafs

from airflow_provider_streams.errors import InvalidWindow, SinkError, TableOwnedByOther
from airflow_provider_streams.lake.columns import WINDOW_COLUMNS, window_folder
from airflow_provider_streams.lake.folder_overlap import check_mounted, check_outside, sign_around
from airflow_provider_streams.lake.parquet.atomic_rename import flush, replace_folder
from airflow_provider_streams.lake.parquet.file_names import ASIDE, exchange_folder, hide, ready_to_exchange
from airflow_provider_streams.lake.parquet.overlap_replacement import recover_replacement, taken_out
from airflow_provider_streams.lake.parquet.type_widening import COLUMNS, NEXT, Columns, TargetOf
from airflow_provider_streams.lake.process_lock import open_lock, wait_for_lock
from airflow_provider_streams.lake.storage_errors import errors_at
from airflow_provider_streams.lake.table_properties import check_owner, in_the_way
from airflow_provider_streams.model.sinks.landing import TableMark, TableState, TableTerms
from airflow_provider_streams.model.window.window import Window, moment_label, moment_of_label

QUARANTINE = "_quarantine"
"""The folder of a window's undecodable events, replaced with its rows."""

PROOF = "_receipt.json"
"""In a window's folder: the plan that it was read by, and its rows."""

_MARK = "_table.json"
_LOCK = "_table.lock"
_STAGING = "_staging"
_SET_ASIDE = "_set_aside"
_OURS = (_MARK, f"{_MARK}.draft", _LOCK, _STAGING, _SET_ASIDE, COLUMNS, NEXT, f"{COLUMNS}.draft")


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
        mark = self._mark()
        if mark is None:
            check_mounted(str(self.root), self.root)
            with errors_at(str(self.root), "the folder cannot be read"):
                self._refuse_others()
            return None
        return TableState(mark, frozenset(self.windows() if near is None else self.windows_near(near)))

    def windows(self) -> Iterator[Window]:
        """The windows that it holds."""
        for name in _names(self.root, WINDOW_COLUMNS[0]):
            yield from self._windows_in(name)

    def windows_near(self, window: Window) -> Iterator[Window]:
        """The windows that begin within one, and the last one that begins before.

        All windows that share time with it are among them, for windows of a table share no time with each other. So a
        landing does not look into the folders of all windows.
        """
        names = sorted(_names(self.root, WINDOW_COLUMNS[0]), key=_in_order)
        first, last = (
            bisect_left(names, _in_order(f"{WINDOW_COLUMNS[0]}={moment_label(edge)}"), key=_in_order)
            for edge in (window.start, window.end)
        )
        for name in names[first:last]:
            yield from self._windows_in(name)
        before = (list(self._windows_in(name)) for name in reversed(names[:first]))
        yield from next(filter(None, before), [])  # folders may be empty

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
        self.make_staging(terms)
        with errors_at(str(self.root), "the folder cannot be used"), self._locked():
            self._owner(terms)

    def make_staging(self, terms: TableTerms) -> None:
        """Make the folder of files that are being written. Checks and raises as `claim`, and writes no mark."""
        with errors_at(str(self.root), "the folder cannot be used"):
            if (found := self._mark()) is None:
                self._refuse_others()  # before we put anything into a folder that is not ours
            else:
                check_owner(str(self.root), found, terms, _SET_ASIDE)
            self.staging.mkdir(parents=True, exist_ok=True)

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
            if (before := self._owner(terms)) != terms.mark:
                flush(staged)  # first, for a disk may refuse it
                self._set_aside(before)
                self.columns.forget()
                self._write_mark(terms.mark)
            if held is not None and not held.is_at(self.folder_of(window)):
                raise SinkError(
                    str(self.root), f"window {window} was landed again by another run meanwhile: do it once more"
                )
            others = in_the_way(window, self.windows_near(window), terms)
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

    def _owner(self, terms: TableTerms) -> TableMark:
        """Its mark: the terms' own, which a table without a mark gets, or an earlier one that gives way to it."""
        recover_replacement(self)
        found = self._mark()
        if found is None:
            self._refuse_others()
            self._write_mark(terms.mark)
            return terms.mark
        check_owner(str(self.root), found, terms, _SET_ASIDE)
        return found

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
                f"the folder holds {data.relative_to(self.root)}, and no {_MARK} says whose that is. A table has one "
                "owner: move it away, or land in another folder",
            )

    def _set_aside(self, mark: TableMark) -> None:
        """Hide all windows from readers, and keep them: the stream may not hold their events any more.

        The mark stays until another replaces it, so the next attempt after a kill finds it, with the windows left.
        """
        for part in list(self.root.glob(f"{WINDOW_COLUMNS[0]}=*")):
            hide(part, ASIDE)
            part.rename(self._room_aside(mark, part.name) / part.name)
        shutil.copy(self.root / _MARK, self._room_aside(mark, _MARK) / _MARK)

    def _room_aside(self, mark: TableMark, name: str) -> Path:
        """A folder for what was landed under a mark; another one if it has such a window already."""
        ids = (f"{mark.id}.{number}" if number else mark.id for number in itertools.count())
        rooms = (self.set_aside / f"{each}{ASIDE}" for each in ids)
        folder = next(one for one in rooms if not (one / name).exists())
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _mark(self) -> TableMark | None:
        try:
            return TableMark.from_json(json.loads((self.root / _MARK).read_text()))
        except FileNotFoundError:
            return None
        except NotADirectoryError as error:
            raise SinkError(str(self.root), "it is a file, or below one: a table is a folder") from error
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SinkError(str(self.root), f"its {_MARK} cannot be read: {error}") from error

    def _write_mark(self, mark: TableMark) -> None:
        draft = self.root / f"{_MARK}.draft"
        with draft.open("w") as file:
            json.dump(mark.to_json(), file)
            file.flush()
            os.fsync(file.fileno())
        draft.rename(self.root / _MARK)


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


def _in_order(name: str) -> str:
    """What sorts like the time in a folder's name: `..00.5Z` is after `..00Z`."""
    return name.removesuffix("Z")
