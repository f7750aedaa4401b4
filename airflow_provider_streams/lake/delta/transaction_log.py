"""A Delta table's log: its newest version, by delta-rs, and whether delta-rs can read it."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from airflow_provider_streams.errors import SinkError, TableUnavailable
from airflow_provider_streams.lake.columns import WINDOW_COLUMNS
from airflow_provider_streams.lake.delta.storage import LOG, errors_of, location_of, object_store_options
from airflow_provider_streams.lake.delta.table_version import DeltaVersion, entry_of
from airflow_provider_streams.lake.delta.unmet_requirements import described_by, unmet
from airflow_provider_streams.lake.delta.writer_requirements import Use
from airflow_provider_streams.lake.storage import Storage
from airflow_provider_streams.lake.table_properties import properties_of, refuse_other_mark
from airflow_provider_streams.model.optional_dependencies import importing
from airflow_provider_streams.model.sinks.landing import TableMark

_LOOKED_BACK = 100
"""At how many commits a table is judged that delta-rs cannot read."""

_ROUNDS = 60
"""How often other commits may come first."""
_FIRST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 1.0


class SeenVersion:
    """A version that was loaded a while ago. What followed it costs less to read than the whole log."""

    def __init__(self, storage: Storage, version: DeltaVersion) -> None:
        self._storage, self._version = storage, version
        self._entry = self._find_entry()

    def newest(self) -> DeltaVersion | None:
        """As `load`. The earlier version is of no use from then on."""
        if self._entry is None or self._find_entry() != self._entry:
            return load(self._storage)  # the user made the table again
        with suppress(OSError, _deltalake().exceptions.DeltaError):
            return self._version.advanced()
        return load(self._storage)

    def _find_entry(self) -> tuple[int, int] | None:
        """Tells the version's commit from a commit of another table that was made in its place."""
        with errors_of(self._storage):
            system, root = self._storage.open()
            found = system.get_file_info(entry_of(root, self._version.number))
        return None if found.mtime_ns is None else (found.size, found.mtime_ns)


def load(storage: Storage) -> DeltaVersion | None:
    """The newest version of a table; None: there is no table. Raises `TableUnavailable` or `SinkError`."""
    deltalake = _deltalake()
    with errors_of(storage):
        try:
            table = deltalake.DeltaTable(location_of(storage), storage_options=object_store_options(storage))
            return DeltaVersion(storage, table)
        except deltalake.exceptions.TableNotFoundError:
            return None
        except deltalake.exceptions.DeltaError:
            refuse_unreadable(storage)  # in clearer words
            raise


def refuse_unreadable(storage: Storage) -> None:
    """Raise `SinkError` if the newest commits of a table, which delta-rs need not be able to read, ask too much."""
    system, root = storage.open()
    with suppress(OSError, ValueError, KeyError):
        found = system.get_file_info(pafs.FileSelector(f"{root}/{LOG}"))
        logs = sorted((one.path for one in found if one.path.endswith(".json")), reverse=True)[:_LOOKED_BACK]
        table = described_by(map(partial(_text_of, system), logs))
        if table is not None and (why := unmet(table, Use.WINDOWS)):
            raise SinkError(storage.root, f"the table cannot be used: {why}")


def _text_of(system: pafs.FileSystem, path: str) -> str:
    with system.open_input_stream(path) as file:
        return file.read().decode()


def versions(
    storage: Storage, first: DeltaVersion | None = None, *, mark: TableMark | None = None
) -> Iterator[DeltaVersion]:
    """The newest version (at first the given one, if any), again and again while others commit.

    Raises:
        SinkError: there is no table.
        TableOwnedByOther: it does not bear the mark, if one is given.
        TableUnavailable: others were first too often.
    """
    longest = _FIRST_PAUSE_SECONDS
    for number in range(_ROUNDS):
        version = first if first is not None and number == 0 else load(storage)
        if version is None:
            raise SinkError(storage.root, "there is no such table, or it was deleted meanwhile")
        if mark is not None:
            refuse_other_mark(storage.root, version.mark, mark)
        yield version
        time.sleep(random.uniform(0, longest))  # noqa: S311 - so that waiting writers do not meet again
        longest = min(2 * longest, _LONGEST_PAUSE_SECONDS)
    raise TableUnavailable(storage.root, f"other commits were first {_ROUNDS} times: land fewer windows at once")


def make(storage: Storage, columns: pa.Schema, mark: TableMark, partition_by: Sequence[str] = WINDOW_COLUMNS) -> None:
    """Make a table, if there is none; raises `SinkError`."""
    with errors_of(storage):
        try:
            _deltalake().DeltaTable.create(
                location_of(storage),
                columns,
                partition_by=list(partition_by),
                configuration=properties_of(mark),
                storage_options=object_store_options(storage),
                raise_if_key_not_exists=False,
            )
        except Exception:
            if load(storage) is None:
                raise


def _deltalake() -> Any:
    with importing("delta"):
        import deltalake  # noqa: PLC0415 - optional
        import deltalake.exceptions  # noqa: PLC0415
    return deltalake
