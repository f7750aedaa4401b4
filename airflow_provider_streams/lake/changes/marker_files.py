"""Markers of a table, in files that no reader of the table sees: immutable ones, and a list of them.

    <folder of the data>/_markers/<number>.parquet    names the files that count, and the windows that were applied
    <folder of the data>/_markers/<random>.parquet    markers, sorted by the first key

Both are Parquet, the list with its JSON as the only value: stores of tables alone (S3 Tables) take no other files.

**The commit of the table names the list that belongs to its rows.** A window's files and its list are written first,
and no one reads them before the table names them. So at any moment, rows and markers are of the same windows:

- Killed before the table's commit: the table names the former list. New files count for no one, and the next attempt
  writes its own.
- Killed after it: rows and list became the table's in one step.
- Two attempts at once: each made its list from the one that the table named when it began. The table refuses the second
  commit, because the first one changed the table. The second attempt begins again, from the new list.

Were markers written after the rows, a kill in between would lose a delete whose row is gone: an older change could
bring it back. Were they effective before the rows, a window that never lands could delete a row of another one.

Markers are parts of states, and a join of states does not care how often a part comes. So a window adds a file, and
changes none. If there are many files, or markers are no longer needed, the next window writes one file for all.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.changes.applied_windows import windows_from_json, windows_to_json
from airflow_provider_streams.lake.changes.arrow_compute import pc
from airflow_provider_streams.lake.changes.columns import UnusableChanges
from airflow_provider_streams.lake.changes.latest_and_history import as_schema
from airflow_provider_streams.lake.storage import Storage
from airflow_provider_streams.model.window.window import Window

FOLDER: Final = "_markers"
_SUFFIX: Final = ".parquet"
_LIST: Final = "list"
_NUMBER_DIGITS: Final = 16
MOST_FILES: Final = 16
_VERSION: Final = 1
_ROW_GROUP: Final = 65_536
_NUMBER_BITS: Final = 62


@dataclass(frozen=True)
class MarkerList:
    """What a table's commit names: its markers, and what else must hold for the next window."""

    table_id: str
    """Of the table's mark. A full refresh gives the table another one, and so begins without markers and windows."""
    rules: Mapping[str, Any] = field(default_factory=dict)
    """Of the table, as plain JSON; none as long as its keys are not known."""
    files: tuple[str, ...] = ()
    life: str | None = None
    """Of the source; None: not known."""
    table: str | None = None
    """Of the database; None: not known."""
    windows: frozenset[Window] = frozenset()
    """Those that were applied."""

    def with_rules(self, rules: Mapping[str, Any]) -> Self:
        """The list for changes of these rules.

        Raises:
            UnusableChanges: the table was made with other ones.
        """
        if self.rules and rules and self.rules != rules:
            raise UnusableChanges(
                f"the table was made with {dict(self.rules)}, and its changes cannot be applied with {dict(rules)}: "
                "use full_refresh=True, or another table"
            )
        return replace(self, rules=rules or self.rules)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "version": _VERSION,
            "table_id": self.table_id,
            "rules": dict(self.rules),
            "files": list(self.files),
            "life": self.life,
            "table": self.table,
            "windows": windows_to_json(self.windows),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The reverse of `to_json`."""
        windows = windows_from_json(data["windows"])
        return cls(data["table_id"], data["rules"], tuple(data["files"]), data["life"], data["table"], windows)


def read_list(storage: Storage, number: int | None, table_id: str) -> MarkerList:
    """The list that a table names; an empty one if it names none, or one of an earlier mark.

    Args:
        storage: the folder of the table's data.
        number: of the list; None: the table names none.
        table_id: of the table's mark.

    Raises:
        SinkError: it cannot be read.
    """
    if number is None:
        return MarkerList(table_id)
    system, root = storage.open()
    path = list_path(number)
    with storage.errors("the list of markers cannot be read"):
        try:
            rows: Any = pq.read_table(f"{root}/{path}", filesystem=system, partitioning=None)
        except FileNotFoundError as error:
            raise SinkError(
                storage.root, f"{path}, which the table names, is not there: put it back from a copy"
            ) from error
    data = json.loads(rows[_LIST][0].as_py())
    if data["version"] != _VERSION:
        raise SinkError(storage.root, f"{path} is of version {data['version']}, which a newer release wrote")
    found = MarkerList.from_json(data)
    return found if found.table_id == table_id else MarkerList(table_id)


def list_path(number: int) -> str:
    """The place of a list in the folder of the table's data."""
    return f"{FOLDER}/{number:0{_NUMBER_DIGITS}x}{_SUFFIX}"


def number_in(name: str) -> int | None:
    """The number of a list, by the name of its file; None: it is a file of markers."""
    digits = name.removesuffix(_SUFFIX)
    return int(digits, 16) if len(digits) == _NUMBER_DIGITS else None


class MarkerFiles:
    """The markers of one table, as its commit names them.

    Args:
        storage: the folder of the table's data.
        chosen: the list that the table names.
    """

    def __init__(self, storage: Storage, chosen: MarkerList) -> None:
        self._storage, self.list = storage, chosen

    def read(self, schema: pa.Schema, key: str | None = None, low: Any = None, high: Any = None) -> pa.Table:
        """Markers, and all that have no key.

        Args:
            schema: of the table's markers.
            key: the first key; None: all markers are read.
            low: the least value of the key that is asked for.
            high: the greatest.
        """
        wanted = None
        if key is not None:
            of_key = pc.field(key)
            wanted = of_key.is_null() | ((of_key >= low) & (of_key <= high))
        found = [schema.empty_table()]
        system, root = self._storage.open()
        for path in self.list.files:
            with self._storage.errors(f"{path}, which holds markers, cannot be read"):
                rows: Any = pq.read_table(f"{root}/{path}", filesystem=system, filters=wanted, partitioning=None)
                found.append(as_schema(rows, schema))
        return pa.concat_tables(found)

    def added(self, markers: pa.Table, key: str) -> MarkerList:
        """The list with further markers, in a new file; raises `SinkError`."""
        if not len(markers):
            return self.list
        return replace(self.list, files=(*self.list.files, self._write(markers, key)))

    def rewritten(self, markers: pa.Table, key: str) -> MarkerList:
        """A list of one file with these markers, or of none; raises `SinkError`."""
        return replace(self.list, files=(self._write(markers, key),) if len(markers) else ())

    def write_list(self, chosen: MarkerList) -> int:
        """Write a list, and return its number, by which a commit can name it; raises `SinkError`."""
        number = secrets.randbits(_NUMBER_BITS)
        system, root = self._open()
        path = f"{root}/{list_path(number)}"
        with self._storage.errors("markers cannot be written"), system.open_output_stream(path) as out:
            pq.write_table(pa.table({_LIST: [json.dumps(chosen.to_json())]}), out)
        return number

    def _open(self) -> tuple[Any, str]:
        self._storage.make_folder(FOLDER)
        return self._storage.open()

    def _write(self, markers: pa.Table, key: str) -> str:
        path = f"{FOLDER}/{secrets.token_hex(16)}{_SUFFIX}"
        system, root = self._open()
        with self._storage.errors("markers cannot be written"), system.open_output_stream(f"{root}/{path}") as out:
            pq.write_table(markers.sort_by(key), out, compression="zstd", row_group_size=_ROW_GROUP)
        return path
