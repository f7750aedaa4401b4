"""Names of files that are not, or no longer, rows of the table: `**/*.parquet` below its folder does not match them.

A window's folder is exchanged as a whole, so its files get their final names before, outside of the table:

    <parent>/.<table>.exchange/

If the parent folder is not writable, or is another file system (the table is a mount point), they get them in
`_staging`. A glob can then match them during the exchange, and after a kill during it until the next landing.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

STAGED: Final = ".staged"
"""Ends the name of a data file that is not committed: `part-*.parquet.staged`."""

ASIDE: Final = ".aside"
"""Ends the name of a data file that was set aside: `part-*.parquet.aside`."""

_DATA: Final = ".parquet"
_DOOMED: Final = ".doomed"


def exchange_folder(root: Path) -> Path:
    """Where folders of a table are exchanged, if that folder can be used."""
    real = root.resolve()
    return real.parent / f".{real.name}.exchange"


def hide(folder: Path, suffix: str) -> None:
    """Append a suffix to the names of the data files in a folder and below it."""
    for file in sorted(folder.rglob(f"*{_DATA}")):
        file.rename(file.with_name(file.name + suffix))


@contextmanager
def ready_to_exchange(staged: Path, exchange: Path) -> Iterator[Path]:
    """Give a staged folder its final file names, at its place for the exchange. At the end, remove what is left there.

    Requires the table's lock.
    """
    folder = _moved(staged, exchange)
    try:
        for file in sorted(folder.glob(f"*{STAGED}")):
            file.rename(file.with_suffix(""))
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):
            exchange.rmdir()


def lock_file_of(staged: Path) -> Path:
    """The file whose lock shows that the attempt lives which made this folder of `_staging`."""
    label, _, attempt = staged.name.partition("-")  # a label has dots if windows start between two seconds
    return staged.with_name(f"{label}-{attempt.partition('.')[0]}.alive")


def remove_dead(left: Path) -> None:
    """Remove what a dead process left; raises `OSError`, also if it is gone.

    It is renamed first, so an attempt that only looked dead cannot put an emptied folder in place.
    """
    doomed = left if left.suffix == _DOOMED else left.rename(left.with_name(f"{left.name}{_DOOMED}"))
    if doomed.is_dir():
        shutil.rmtree(doomed)
    else:
        doomed.unlink()


def _moved(staged: Path, exchange: Path) -> Path:
    """Raises OSError only if the staged folder is gone."""
    folder = exchange / staged.name
    try:
        exchange.mkdir(exist_ok=True)
        staged.rename(folder)
    except OSError:
        if not staged.is_dir():
            raise
        return staged
    return folder
