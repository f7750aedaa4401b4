"""What a reader lands, the same for all its windows; and what became of one window."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Self

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.column_type import ColumnType, Path
from airflow_provider_streams.model.payload import Payload, payload_to_json
from airflow_provider_streams.model.placeholders import is_fan_out, target_of
from airflow_provider_streams.model.receipt import Receipt
from airflow_provider_streams.model.sink import Sink
from airflow_provider_streams.model.window import Window

Schema = tuple[tuple[str, str], ...]
"""Columns of a table: name, and type as Spark writes it (`simpleString`)."""

ROWS_GONE = "its rows are no longer in the table"
"""Why a window that was covered is not."""


@dataclass(frozen=True, slots=True)
class Landing:
    """Where the rows of a reader go, and what becomes of them on the way."""

    sink: Sink | None = None
    """None: nowhere; windows are read and proven only."""
    transform: str | None = None
    columns: tuple[str, ...] | None = None
    """None: the system's default ones."""
    value: Payload | None = None
    """What values are decoded as, as the source says (see `windows.ask.Ask`); None: they are not."""
    key: Payload | None = None
    """The same of keys."""

    def __post_init__(self) -> None:
        if is_fan_out(self.sink):
            raise InvalidRequest(
                f"{target_of(self.sink)!r} is a table for each topic or stream: ReadWindowOperator and "
                "BackfillWindowsOperator land so. Here, name one topic or stream, and its table."
            )

    def __str__(self) -> str:
        columns = f"columns {', '.join(self.columns)}" if self.columns else "default columns"
        through = f" through {self.transform}" if self.transform else ""
        decoded = f", {self.value.format} values" if self.value else ""
        return f"{self.sink.asset_uri if self.sink else 'no table'} ({columns}{decoded}{through})"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; no secret."""
        return {
            "target": _target(self.sink),
            "sink": self.sink.to_json() if self.sink else None,
            "transform": self.transform,
            "columns": list(self.columns) if self.columns is not None else None,
            "value": payload_to_json(self.value),
            "key": payload_to_json(self.key),
        }


@dataclass(frozen=True, slots=True)
class TableMark:
    """Whose table it is, as it is written into the table itself."""

    id: str
    """Given by the journal: a table that was made anew, or under another journal, has another one."""
    source: str
    """`Source.key`."""
    reader: str

    def __str__(self) -> str:
        return f"reader {self.reader!r} of {self.source} (table {self.id[:12]})"

    def to_json(self) -> dict[str, str]:
        """Plain JSON values."""
        return {"id": self.id, "source": self.source, "reader": self.reader}

    @classmethod
    def from_json(cls, data: dict[str, str]) -> Self:
        """The reverse of `to_json`."""
        return cls(data["id"], data["source"], data["reader"])


@dataclass(frozen=True, slots=True)
class TableTerms:
    """What holds for every window that is put into a table."""

    mark: TableMark
    columns: Schema | None = None
    """Of the rows it holds; None: none yet, or nobody knows. They may only grow."""
    replace_overlaps: bool = False
    """Windows that share time with the new one are taken out as a whole; otherwise they are in its way."""
    set_aside: bool = False
    """What the same reader landed under another mark is set aside, whatever that is."""
    earlier: tuple[str, ...] = ()
    """The ids of marks under which the reader landed before it began anew: set aside by the first window that lands."""
    later: tuple[str, ...] = ()
    """What it got after the plan of the rows to come was pinned: columns, fields of structs. See `missing_columns`."""

    def gives_way(self, found: TableMark) -> bool:
        """Whether what was landed under another mark is set aside; otherwise it is in the way."""
        is_readers = (found.source, found.reader) == (self.mark.source, self.mark.reader)
        return is_readers and (self.set_aside or found.id in self.earlier)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "mark": self.mark.to_json(),
            "columns": [list(column) for column in self.columns] if self.columns is not None else None,
            "replace_overlaps": self.replace_overlaps,
            "set_aside": self.set_aside,
            "earlier": list(self.earlier),
            "later": list(self.later),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The reverse of `to_json`."""
        columns = data["columns"]
        return cls(
            TableMark.from_json(data["mark"]),
            None if columns is None else tuple((name, kind) for name, kind in columns),
            data["replace_overlaps"],
            data["set_aside"],
            tuple(data["earlier"]),
            tuple(data["later"]),
        )


@dataclass(frozen=True, slots=True)
class TableState:
    """What a table says of itself."""

    mark: TableMark
    windows: frozenset[Window]
    tells_empty: bool = True
    """Whether a window that was landed without rows is among them; otherwise it leaves nothing in the table."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a window's last landing accounted for."""

    rows: int
    """Of the read, before a transform."""
    undecodable: int = 0
    """Events that were no rows: kept aside, or left out."""

    def missing(self, receipt: Receipt) -> int:
        """How many of its events a new read of the window accounts for no more."""
        rows = self.rows - receipt.rows
        return max(rows, rows + self.undecodable - receipt.undecodable, 0)

    def to_json(self) -> list[int]:
        """Plain JSON values."""
        return [self.rows, self.undecodable]

    @classmethod
    def from_json(cls, data: list[int]) -> Self:
        """The reverse of `to_json`."""
        return cls(*data)


@dataclass(frozen=True, slots=True)
class Landed:
    """One window that was read, proven, and put in place."""

    receipt: Receipt
    written: int | None = None
    """Rows in the table; None: nothing was written, or nobody counted."""
    schema: Schema | None = None
    """Of the table's rows."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "receipt": self.receipt.to_json(),
            "written": self.written,
            "schema": [list(column) for column in self.schema] if self.schema is not None else None,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The reverse of `to_json`."""
        schema = data["schema"]
        return cls(
            Receipt.from_json(data["receipt"]),
            data["written"],
            None if schema is None else tuple((name, kind) for name, kind in schema),
        )


def missing_columns(before: Schema, now: Schema, later: Collection[str] = ()) -> list[str]:
    """What a table's rows would lose: columns and fields of structs that are no more, or of another type.

    New ones are no loss.

    Args:
        before: the columns of the table.
        now: those of the rows.
        later: those that the table got after the plan of these rows was pinned, as `new_columns` names them. The rows
            are of the table that it was then, so they may lack them; unless they bring others, for then a column may
            have got another name.
    """
    table, rows = _as_struct(before), _as_struct(now)
    may_lack = () if any(rows.missing(table)) else later
    changed = [f"{_dotted(path)} is {new} instead of {old}" for path, old, new in table.changed(rows)]
    missing = [
        f"{_dotted(path)} is missing, it was {kind}"
        for path, kind in table.missing(rows)
        if not any(_dotted(path[:depth]) in may_lack for depth in range(1, len(path) + 1))
    ]
    return changed + missing


def grown(before: Schema, landed: Schema) -> Schema:
    """The columns of a table after rows of these went into it: it keeps what the rows lack, in structs, too."""
    both = _as_struct(before).grown(_as_struct(landed))
    return tuple((name, str(kind)) for name, kind in both.parts.items())


def new_columns(before: Schema, landed: Schema) -> tuple[str, ...]:
    """What such rows bring that a table did not have: columns, and fields of structs, like `address.zip`."""
    return tuple(_dotted(path) for path, _ in _as_struct(landed).missing(_as_struct(before)))


def _as_struct(columns: Schema) -> ColumnType:
    return ColumnType("struct", {name: ColumnType.parse(kind) for name, kind in columns})


def _dotted(path: Path) -> str:
    return ".".join(path)


def _target(sink: Sink | None) -> str | None:
    """What says whether two sinks are one table: how its files are compressed does not."""
    return sink.asset_uri if sink else None


def columns_of(given: object) -> tuple[str, ...] | None:
    """The names of columns: a sequence, or a text with commas between them; None: the system's default ones.

    Raises:
        InvalidRequest: something else.
    """
    if given is None:
        return None
    names = given.split(",") if isinstance(given, str) else given
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise InvalidRequest(f"columns are names of columns, like ['value', 'key'], not {given!r}")
    return tuple(name.strip() for name in names if name.strip()) or None
