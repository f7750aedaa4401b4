"""A table that is a folder: whose it is, which windows it holds, and how one of them is replaced. No Spark in here.

    <path>/_table.json                                             whose it is
    <path>/window_start=20261120T100000Z/window_end=20261120T110000Z/*.parquet
    <path>/_staging/                                               what is being written
    <path>/_set_aside/<table>/                                     what was landed under an earlier mark

Readers of Parquet pass over names that begin with an underscore.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from airflow_provider_streams.errors import ForeignTable, InvalidWindow, SinkError, WindowsOverlap
from airflow_provider_streams.model.landing import TableMark, TableState, TableTerms
from airflow_provider_streams.model.window import Window, moment_label, moment_of_label
from airflow_provider_streams.spark.atomic_rename import replace_folder

WINDOW_COLUMNS = ("window_start", "window_end")
"""The columns that the folders' names give: the edges of the window a row was read for, as `moment_label`."""

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
        """What it says of itself; None: there is no table of ours.

        Raises:
            SinkError: nobody can tell: what the folder should lie in is not here.
        """
        mark = self._mark()
        if mark is None and not self.root.parent.is_dir():
            raise SinkError(
                str(self.root),
                f"there is no {self.root.parent} here: mount it; or make it, if it was deleted on purpose",
            )
        return None if mark is None else TableState(mark, frozenset(self.windows()))

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
        """Make it, marked as the reader's; or see that it is.

        Raises:
            ForeignTable: it is somebody else's, or holds data and nobody knows whose.
            SinkError: the folder cannot be made or read.
        """
        try:
            self.staging.mkdir(parents=True, exist_ok=True)
            with self._locked():
                self._claim(terms)
        except OSError as error:
            raise SinkError(str(self.root), f"the folder cannot be used: {error}") from error

    def put(self, staged: Path, window: Window, terms: TableTerms) -> None:
        """Make a staged folder the window's, in one step; and take windows out that share time with it.

        Raises:
            ForeignTable: it became somebody else's meanwhile.
            WindowsOverlap: there are windows that share time with it, and they shall stay.
            OSError: the table is what it was.
        """
        with self._locked():
            self._claim(terms)
            in_the_way = sorted(one for one in self.windows() if one != window and one.overlaps(window))
            if in_the_way and not terms.replace_overlaps:
                raise WindowsOverlap(terms.mark.source, window, in_the_way)
            aside = {one: staged.with_name(f"{staged.name}.replaced-{n}") for n, one in enumerate(in_the_way)}
            with self._taken_out(aside):
                target = self.folder_of(window)
                target.parent.mkdir(exist_ok=True)
                replace_folder(staged, target)

    @contextmanager
    def _taken_out(self, aside: Mapping[Window, Path]) -> Iterator[None]:
        """Windows stand aside while another takes their place; they come back if it cannot."""
        done: list[Window] = []
        try:
            for window, folder in aside.items():
                self.folder_of(window).rename(folder)
                done.append(window)
            yield
        except BaseException:
            for window in done:
                aside[window].rename(self.folder_of(window))
            raise
        for window, folder in aside.items():
            shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):
                self.folder_of(window).parent.rmdir()  # of a start that holds no window any more

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

    def _claim(self, terms: TableTerms) -> None:
        found = self._mark()
        if found is None:
            self._refuse_others()
            self._write_mark(terms.mark)
        elif found != terms.mark:
            if not terms.set_aside or (found.source, found.reader) != (terms.mark.source, terms.mark.reader):
                raise ForeignTable(str(self.root), _foreign(found, terms.mark))
            self._set_aside(found)
            self._write_mark(terms.mark)

    def _refuse_others(self) -> None:
        """A new table has its folder for itself: who reads a folder reads all that lies below it."""
        around = next((folder for folder in self.root.resolve().parents if (folder / _MARK).exists()), None)
        if around is not None:
            raise ForeignTable(
                str(self.root),
                f"it lies inside of {around}, which is another table: who reads that would read this, too. "
                "Land beside it",
            )
        entries = [entry for entry in self.root.iterdir() if entry.name not in _OURS]
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
        """Out of the readers' sight, and kept: what the stream no longer holds is nowhere else."""
        folder = self.root / _SET_ASIDE / mark.id
        folder.mkdir(parents=True, exist_ok=True)
        for part in self.root.glob(f"{WINDOW_COLUMNS[0]}=*"):
            part.rename(folder / part.name)
        (self.root / _MARK).rename(folder / _MARK)

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


def _foreign(found: TableMark, wanted: TableMark) -> str:
    if (found.source, found.reader) != (wanted.source, wanted.reader):
        return (
            f"the table belongs to {found}, not to {wanted}. A table has one owner, for the windows of two would "
            "replace or double each other: land in another folder"
        )
    return (
        f"the table was landed as {found.id[:12]}, and the journal expects {wanted.id[:12]}: it was made under another "
        "journal (another deployment?), or put back from a copy. Land in another folder; or reland=True sets aside "
        f"what it holds, in {_SET_ASIDE}, and every window is missing again"
    )
