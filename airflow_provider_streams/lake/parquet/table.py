"""A table that is a folder: whose it is, which windows it holds, and how one of them is replaced. No Spark in here.

    <path>/_table.json                                             whose it is
    <path>/window_start=20261120T100000Z/window_end=20261120T110000Z/*.parquet
    <path>/window_start=../window_end=../_quarantine/*.quarantine  its events that cannot be decoded
    <path>/_staging/                                               what is being written
    <path>/_set_aside/<table>/                                     what was landed under an earlier mark

Readers of Parquet pass over names that begin with an underscore.
"""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

import pyarrow.fs as pafs

from airflow_provider_streams.errors import ForeignTable, InvalidWindow, SinkError, WindowsOverlap
from airflow_provider_streams.lake.folders import sign_around
from airflow_provider_streams.lake.owner import check_owner
from airflow_provider_streams.lake.parquet.atomic_rename import flush, replace_folder
from airflow_provider_streams.lake.parquet.making_room import bring_back, taken_out
from airflow_provider_streams.lake.store_failures import failure_of
from airflow_provider_streams.model.landing import TableMark, TableState, TableTerms
from airflow_provider_streams.model.window import Window, moment_label, moment_of_label

WINDOW_COLUMNS = ("window_start", "window_end")
"""The columns that the folders' names give: the edges of the window a row was read for, as `moment_label`."""

QUARANTINE = "_quarantine"
"""The folder of a window's undecodable events, replaced with its rows."""

PROOF = "_receipt.json"
"""Which plan a window's folder holds, and how many rows."""

_MARK = "_table.json"
_LOCK = "_table.lock"
_STAGING = "_staging"
_SET_ASIDE = "_set_aside"
_OURS = (_MARK, f"{_MARK}.draft", _LOCK, _STAGING, _SET_ASIDE)


class ParquetTable:
    """One table."""

    def __init__(self, path: str) -> None:
        self.root = Path(path)
        self.staging = self.root / _STAGING

    def folder_of(self, window: Window) -> Path:
        """Where a window's files are."""
        first, last = WINDOW_COLUMNS
        return self.root / f"{first}={moment_label(window.start)}" / f"{last}={moment_label(window.end)}"

    def state(self) -> TableState | None:
        """What it says of itself; None: there is no table.

        Raises:
            ForeignTable: it holds data, and does not say whose.
            SinkError: nobody can tell: what the folder should lie in is not here.
        """
        mark = self._mark()
        if mark is None and not self.root.parent.is_dir():
            raise SinkError(
                str(self.root),
                f"there is no {self.root.parent} here: mount it; or make it, if it was deleted on purpose",
            )
        if mark is None:
            try:
                self._refuse_others()
            except OSError as error:
                raise failure_of(str(self.root), f"the folder cannot be read: {error}", error) from error
            return None
        return TableState(mark, frozenset(self.windows()))

    def windows(self) -> Iterator[Window]:
        """Those it holds."""
        first, last = WINDOW_COLUMNS
        for start in _labels(self.root, first):
            for end in _labels(self.root / f"{first}={moment_label(start)}", last):
                with suppress(InvalidWindow):
                    window = Window(start, end)
                    # one without rows has a file as well
                    if any(self.folder_of(window).glob("*.parquet")):
                        yield window

    def claim(self, terms: TableTerms) -> None:
        """Make it, marked as the reader's; or see that it is, or may become so: nothing is set aside yet.

        Raises:
            ForeignTable: it is somebody else's, or holds data and nobody knows whose.
            SinkError: the folder cannot be made or read.
        """
        try:
            if self._mark() is None:
                self._refuse_others()  # before anything of ours is in a folder that is not
            self.staging.mkdir(parents=True, exist_ok=True)
            with self._locked():
                self._owner(terms)
        except OSError as error:
            raise failure_of(str(self.root), f"the folder cannot be used: {error}", error) from error

    def put(self, staged: Path, window: Window, terms: TableTerms, *, held: HeldFolder | None = None) -> None:
        """Make a staged folder the window's, in one step; and take windows out that share time with it.

        Args:
            staged: the folder.
            window: whose it becomes.
            terms: whose the table must be; what was landed under an earlier mark is set aside, where it may be.
            held: the folder that must still be the window's; None: any may, or none.

        Raises:
            SinkError: another folder is the window's by now.
            ForeignTable: it became somebody else's meanwhile.
            WindowsOverlap: there are windows that share time with it, and they shall stay.
            OSError: the window is what it was, or was set aside.
        """
        with self._locked():
            if (before := self._owner(terms)) != terms.mark:
                flush(staged)  # whatever a disk may refuse, before anything goes
                self._set_aside(before)
                self._write_mark(terms.mark)
            if held is not None and not held.is_at(self.folder_of(window)):
                raise SinkError(
                    str(self.root), f"window {window} was landed again by another run meanwhile: do it once more"
                )
            in_the_way = sorted(one for one in self.windows() if one != window and one.overlaps(window))
            if in_the_way and not terms.replace_overlaps:
                raise WindowsOverlap(terms.mark.source, window, in_the_way)
            with taken_out(self, staged, in_the_way):
                target = self.folder_of(window)
                target.parent.mkdir(exist_ok=True)
                replace_folder(staged, target)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Nobody else changes which windows it holds meanwhile; on a file system without locks, nobody else should."""
        descriptor = os.open(self.root / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _owner(self, terms: TableTerms) -> TableMark:
        """Whose it is: the terms' own, which one of nobody becomes, or an earlier one that gives way to it."""
        bring_back(self)
        found = self._mark()
        if found is None:
            self._refuse_others()
            self._write_mark(terms.mark)
            return terms.mark
        check_owner(str(self.root), found, terms, _SET_ASIDE)
        return found

    def _refuse_others(self) -> None:
        """A new table has its folder for itself: who reads a folder reads all that lies below it."""
        around = sign_around(pafs.LocalFileSystem(), str(self.root.resolve()))
        if around is not None:
            raise ForeignTable(
                str(self.root),
                f"it lies inside of another table, which has {around}: who reads or cleans that would do so with this, "
                "too. Land beside it",
            )
        entries = [entry for entry in _entries(self.root) if entry.name not in _OURS]
        windows = [entry for entry in entries if entry.name.startswith(f"{WINDOW_COLUMNS[0]}=")]
        below = (file for entry in entries for file in (entry, *entry.rglob("*")))
        files = (file for file in below if file.is_file() or file.is_symlink())  # a link may lead to another table
        data = next(iter(windows), None) or next(files, None)
        if data is not None:
            raise ForeignTable(
                str(self.root),
                f"the folder holds {data.relative_to(self.root)}, and no {_MARK} says whose that is. A table has one "
                "owner: move it away, or land in another folder",
            )

    def _set_aside(self, mark: TableMark) -> None:
        """Out of the readers' sight, and kept: what the stream no longer holds is nowhere else.

        The mark stays until another takes its place: who comes after a kill finds it, with the windows that are left.
        """
        for part in list(self.root.glob(f"{WINDOW_COLUMNS[0]}=*")):
            part.rename(self._room_aside(mark, part.name) / part.name)
        shutil.copy(self.root / _MARK, self._room_aside(mark, _MARK) / _MARK)

    def _room_aside(self, mark: TableMark, name: str) -> Path:
        """A folder for what was landed under a mark; another one where it holds such a window: of a copy put back."""
        ids = (f"{mark.id}.{number}" if number else mark.id for number in itertools.count())
        folder = next(one for one in (self.root / _SET_ASIDE / each for each in ids) if not (one / name).exists())
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _mark(self) -> TableMark | None:
        try:
            return TableMark.from_json(json.loads((self.root / _MARK).read_text()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise SinkError(str(self.root), f"its {_MARK} cannot be read: {error}") from error

    def _write_mark(self, mark: TableMark) -> None:
        draft = self.root / f"{_MARK}.draft"
        with draft.open("w") as file:
            json.dump(mark.to_json(), file)
            file.flush()
            os.fsync(file.fileno())
        draft.rename(self.root / _MARK)


class HeldFolder:
    """A folder that is told from any later one of its name, while it is open.

    Raises:
        FileNotFoundError: there is none.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)

    def is_at(self, path: Path) -> bool:
        """Whether a path is this folder."""
        try:
            return os.path.samestat(os.fstat(self._descriptor), path.stat())
        except OSError:
            return False

    def close(self) -> None:
        """From now on, another folder may look like it."""
        os.close(self._descriptor)


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except FileNotFoundError:
        return []


def _labels(folder: Path, column: str) -> Iterator[datetime]:
    prefix = f"{column}="
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.name.startswith(prefix)]
    except FileNotFoundError:
        return
    for name in names:
        moment = moment_of_label(name.removeprefix(prefix))
        if moment is not None:
            yield moment
