"""Windows of a folder that make room for one that shares time with them: aside while it takes their place, then gone.

It takes a rename for each, so a process may die between them. Then the next one that has the table's lock ends it: they
come back, unless the window that they made room for is in place.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from airflow_provider_streams.model.window import Window, moment_of_label

_ASIDE = ".replaced-"


class Table(Protocol):
    """What is to be known of a `ParquetTable`."""

    staging: Path

    def folder_of(self, window: Window) -> Path:
        """Where a window's files are."""

    def windows(self) -> Iterator[Window]:
        """Those it holds."""


@contextmanager
def taken_out(table: Table, staged: Path, windows: Sequence[Window]) -> Iterator[None]:
    """Meanwhile, windows are aside; they come back if what is done inside fails. For whoever has the table's lock."""
    aside = {window: staged.with_name(f"{staged.name}{_ASIDE}{window.label}") for window in windows}
    done: list[Window] = []
    try:
        for window, folder in aside.items():
            table.folder_of(window).rename(folder)
            done.append(window)
        yield
    except BaseException:
        for window in done:
            aside[window].rename(table.folder_of(window))
        raise
    for window, folder in aside.items():
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):
            table.folder_of(window).parent.rmdir()  # of a start that holds no window any more


def bring_back(table: Table) -> None:
    """End what a dead process left half done. For whoever has the table's lock."""
    left = sorted(table.staging.glob(f"*{_ASIDE}*"))
    held = list(table.windows()) if left else []
    for folder in left:
        window = _window_of(folder)
        if window is None or any(one.overlaps(window) for one in held):
            shutil.rmtree(folder, ignore_errors=True)
        else:
            target = table.folder_of(window)
            target.parent.mkdir(exist_ok=True)
            folder.rename(target)


def _window_of(folder: Path) -> Window | None:
    start, _, end = (moment_of_label(one) for one in folder.name.rpartition(_ASIDE)[2].partition("_"))
    return None if start is None or end is None else Window(start, end)
