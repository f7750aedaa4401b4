"""Keeps the numbers of all windows of a folder equally wide, so that every engine reads them as one table.

    <path>/_columns                the windows' columns, as a Parquet file without rows
    <path>/_columns.next           the columns that they will have: their files are being rewritten

If rows bring wider numbers, the files of the other windows are rewritten in `_staging`. Then these windows are
exchanged one by one, and the new one comes last. A kill between two exchanges leaves windows of both types, with the
same rows. The next landing exchanges the rest.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.columns import promoted, united, wide_as
from airflow_provider_streams.lake.data_files import DataFile, FileTarget
from airflow_provider_streams.lake.file_rewriting import Unfit, rewrite
from airflow_provider_streams.lake.parquet.hidden_files import STAGED
from airflow_provider_streams.model.window.window import Window

if TYPE_CHECKING:
    from airflow_provider_streams.lake.parquet.table import ParquetTable

COLUMNS: Final = "_columns"
NEXT: Final = f"{COLUMNS}.next"

TargetOf = Callable[[Path, pa.Schema], FileTarget]
"""How to write files of some columns in a folder."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a table. All but `read` requires the table's lock."""

    table: ParquetTable

    def read(self) -> pa.Schema:
        """The columns that its windows have or will have; none if they were never noted."""
        return _read(self.table.root / NEXT) or _read(self.table.root / COLUMNS) or pa.schema([])

    def fit(self, staged: Path, target_of: TargetOf, gone: Collection[Window]) -> None:
        """Make the numbers of a staged window and all others, except `gone`, equally wide by rewriting narrower ones.

        After a `SinkError` or `OSError`, every window still has its rows.
        """
        known = _read(self.table.root / COLUMNS)
        if known is None:
            known = _columns_of(self.table.folder_of(window) for window in self.table.windows())
        begun = _read(self.table.root / NEXT)
        wanted = united(united(known, begun or pa.schema([])), _columns_of([staged]))
        if promoted(known, wanted) or begun is not None:
            self._write(NEXT, wanted)
            kept = sorted(set(self.table.windows()) - set(gone))
            self._exchange(kept, wanted, staged, target_of)
        _widen(staged, wanted, target_of)
        if wanted != known or begun is not None:
            self._write(COLUMNS, wanted)
            (self.table.root / NEXT).unlink(missing_ok=True)

    def forget(self) -> None:
        """Remove the notes of a table whose windows were set aside."""
        for name in (NEXT, COLUMNS):
            (self.table.root / name).unlink(missing_ok=True)

    def _write(self, name: str, columns: pa.Schema) -> None:
        draft = self.table.root / f"{COLUMNS}.draft"
        pq.write_metadata(columns, str(draft))
        draft.rename(self.table.root / name)

    def _exchange(self, windows: Sequence[Window], columns: pa.Schema, staged: Path, target_of: TargetOf) -> None:
        """Rewrite all of them before the first exchange, so that windows of both types exist only for a short time."""
        narrow = [folder for folder in map(self.table.folder_of, windows) if _narrow(folder, columns)]
        copies = [staged.with_name(f"{staged.name}.wider-{number}") for number in range(len(narrow))]
        try:
            for folder, copy in zip(narrow, copies, strict=True):
                shutil.copytree(folder, copy, copy_function=_link_hidden)
                _widen(copy, columns, target_of)
            for folder, copy in zip(narrow, copies, strict=True):
                self.table.put_in_place(copy, folder)
        finally:
            for copy in copies:
                shutil.rmtree(copy, ignore_errors=True)


def link(file: str | Path, target: str | Path) -> None:
    """Give a file another name, or copy it where hard links are not possible."""
    try:
        os.link(file, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        shutil.copy2(file, target)


def _link_hidden(file: str | Path, target: str | Path) -> None:
    """`link`, under a name that engines ignore."""
    link(file, f"{target}{STAGED}" if str(target).endswith(".parquet") else target)


_NO_LINKS: Final = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EXDEV, errno.EMLINK}


def _read(file: Path) -> pa.Schema | None:
    try:
        return pq.read_schema(file)
    except FileNotFoundError:
        return None


def _columns_of(folders: Iterable[Path]) -> pa.Schema:
    files = (pq.read_schema(file) for folder in folders for file in sorted(folder.glob("*.parquet*")))
    return reduce(united, files, pa.schema([]))


def _narrow(folder: Path, columns: pa.Schema) -> list[tuple[Path, pa.Schema]]:
    """A folder's files with narrower numbers, and the columns that they should have."""
    found = [(file, pq.read_schema(file)) for file in sorted(folder.glob("*.parquet*"))]
    wanted = [(file, own, wide_as(own, columns)) for file, own in found]
    return [(file, wide) for file, own, wide in wanted if wide != own]


def _widen(folder: Path, columns: pa.Schema, target_of: TargetOf) -> None:
    for file, wide in _narrow(folder, columns):
        rows = pq.read_metadata(file).num_rows
        try:
            rewrite([DataFile(file.name, rows, file.stat().st_size)], target_of(folder, wide))
        except Unfit as error:
            raise SinkError(str(file), f"its numbers cannot become wider: {error}") from error
        file.unlink()
