"""Takes windows out of a folder to make room for one that shares time with them: aside first, and then removed.

That needs one rename for each, so a process may die between them. The next process that has the table's lock ends it:
the windows come back, unless the window that replaces them is in place.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_streams.lake.parquet.atomic_rename import ASIDE_SUFFIX, recover
from airflow_provider_streams.lake.parquet.hidden_files import lock_file_of, remove_dead
from airflow_provider_streams.lake.process_lock import is_alive
from airflow_provider_streams.model.window.window import Window, moment_of_label

if TYPE_CHECKING:
    from airflow_provider_streams.lake.parquet.table import ParquetTable

REPLACED = ".replaced-"
"""In the name of a window's folder while another window takes its place."""


@contextmanager
def taken_out(table: ParquetTable, staged: Path, windows: Sequence[Window]) -> Iterator[None]:
    """Keep windows aside meanwhile; they come back if the code inside fails. Requires the table's lock."""
    aside = {window: staged.with_name(f"{staged.name}{REPLACED}{window.label}") for window in windows}
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
            table.folder_of(window).parent.rmdir()  # if no other window has this start


def recover_replacement(table: ParquetTable) -> None:
    """End what a dead process left half done. Requires the table's lock."""
    for place in (table.exchange, table.staging):
        _end_exchange(table, place)
        _end_replacement(table, place)
    # a kill during an exchange in `_staging` leaves files with their final names there
    exchanged = {file.parent for file in table.staging.glob("*/*.parquet")}
    for left in [*table.exchange.glob("*"), *(one for one in exchanged if not is_alive(lock_file_of(one)))]:
        with suppress(OSError):
            remove_dead(left)
    with suppress(OSError):
        table.exchange.rmdir()


def _end_exchange(table: ParquetTable, place: Path) -> None:
    """After two renames in place of an exchange: the old folder comes back if there is no new one."""
    for aside in sorted(place.glob(f"*{ASIDE_SUFFIX}")):
        window = _window_of(label := aside.name.partition("-")[0])
        if window is not None:
            recover(table.folder_of(window), place, f"{label}-")


def _end_replacement(table: ParquetTable, place: Path) -> None:
    left = sorted(place.glob(f"*{REPLACED}*"))
    held = list(table.windows()) if left else []
    for folder in left:
        window = _window_of(folder.name.rpartition(REPLACED)[2])
        if window is None or any(one.overlaps(window) for one in held):
            shutil.rmtree(folder, ignore_errors=True)
        else:
            target = table.folder_of(window)
            target.parent.mkdir(exist_ok=True)
            folder.rename(target)


def _window_of(label: str) -> Window | None:
    start, _, end = (moment_of_label(one) for one in label.partition("_"))
    return None if start is None or end is None else Window(start, end)
