"""What a reader lands, the same for all its windows, and the outcome of one window."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.model.changes.change_terms import NO_CHANGES, ChangeTerms
from airflow_provider_streams.model.flat_json import FlatJson
from airflow_provider_streams.model.plan.receipt import Receipt
from airflow_provider_streams.model.schema.column_type import ColumnType, Path, wider
from airflow_provider_streams.model.schema.payload import Payload, payload_to_json
from airflow_provider_streams.model.sinks.placeholders import is_fan_out, target_of
from airflow_provider_streams.model.sinks.sink import Sink
from airflow_provider_streams.model.window.window import Window

Schema = tuple[tuple[str, str], ...]
"""Columns of a table: name, and type as Spark writes it, with field names in backticks if they need them."""

ROWS_GONE = "its rows are no longer in the table"
"""Why a window is no longer covered."""


@dataclass(frozen=True, slots=True)
class Landing:
    """Where the rows of a reader go, and how they change on the way."""

    sink: Sink | None = None
    """None: nowhere; windows are only read and proven."""
    transform: str | None = None
    columns: tuple[str, ...] | None = None
    """None: the system's default ones."""
    value: Payload | None = None
    """How values are decoded, as the source says; None: they are not."""
    key: Payload | None = None
    """How keys are decoded, in the same way."""

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
            "target": self.sink.asset_uri if self.sink else None,
            "sink": self.sink.to_json() if self.sink else None,
            "apply": self.sink.apply.to_json() if self.sink and self.sink.apply else None,
            "transform": self.transform,
            "columns": list(self.columns) if self.columns is not None else None,
            "value": payload_to_json(self.value),
            "key": payload_to_json(self.key),
        }


@dataclass(frozen=True, slots=True)
class TableMark(FlatJson):
    """The owner of a table, as the table itself says."""

    id: str
    """The journal gives it. A table that was made again, or under another journal, has another one."""
    source: str
    """`Source.key`."""
    reader: str

    def __str__(self) -> str:
        return f"reader {self.reader!r} of {self.source} (table {self.id[:12]})"


@dataclass(frozen=True, slots=True)
class TableTerms:
    """The rules for every window that lands in a table."""

    mark: TableMark
    columns: Schema | None = None
    """The table's columns, which may only grow; None: it has none yet, or they are not known."""
    replace_overlaps: bool = False
    """Whether to remove windows that share time with the new one; otherwise they block it."""
    set_aside: bool = False
    """Whether to set aside what the same reader landed under any other mark."""
    earlier: tuple[str, ...] = ()
    """The ids of the reader's marks before its full refresh. The first window that lands sets their rows aside."""
    later: tuple[str, ...] = ()
    """Columns and fields that the table got after the plan of the new rows was pinned. See `missing_columns`."""
    changes: ChangeTerms = NO_CHANGES
    """What the plan of the new rows tells of changes; only of use where the sink applies them."""

    def may_be_set_aside(self, found: TableMark) -> bool:
        """Whether to set aside what landed under another mark; otherwise it blocks the window."""
        is_readers = (found.source, found.reader) == (self.mark.source, self.mark.reader)
        return is_readers and (self.set_aside or found.id in self.earlier)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "mark": self.mark.to_json(),
            "columns": _schema_json(self.columns),
            "replace_overlaps": self.replace_overlaps,
            "set_aside": self.set_aside,
            "earlier": list(self.earlier),
            "later": list(self.later),
            "changes": self.changes.to_json(),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The reverse of `to_json`."""
        return cls(
            TableMark.from_json(data["mark"]),
            _schema_of(data["columns"]),
            data["replace_overlaps"],
            data["set_aside"],
            tuple(data["earlier"]),
            tuple(data["later"]),
            ChangeTerms.from_json(data["changes"]),
        )


@dataclass(frozen=True, slots=True)
class TableState:
    """What a table says about itself."""

    mark: TableMark
    windows: frozenset[Window]
    tells_empty: bool = True
    """Whether they include windows without rows; otherwise such a window leaves nothing in the table."""


@dataclass(frozen=True, slots=True)
class Held:
    """The events of a window's last landing."""

    rows: int
    """The rows of the read, before a transform."""
    undecodable: int = 0
    """Events that became no rows: quarantined, or dropped."""

    def missing(self, receipt: Receipt) -> int:
        """How many of these events a new read of the window lacks."""
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
    """One window that was read, proven and written."""

    receipt: Receipt
    written: int | None = None
    """Rows in the table; None: nothing was written, or they were not counted."""
    schema: Schema | None = None
    """The table's columns."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "receipt": self.receipt.to_json(),
            "written": self.written,
            "schema": _schema_json(self.schema),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The reverse of `to_json`."""
        return cls(Receipt.from_json(data["receipt"]), data["written"], _schema_of(data["schema"]))


def rows_text(read: int, written: int | None) -> str:
    """How many rows were read, and how many of them landed if a transform changed their number.

    Args:
        read: those of the receipt, before a transform.
        written: those in the table; None: nothing was written, or they were not counted.
    """
    rows = counted(read, "row")
    return rows if written in (None, read) else f"{rows} read, {written:,} landed"


def sum_of_written(landed: Iterable[Landed]) -> int | None:
    """Rows of several windows in their tables; None: those of some window were not counted."""
    written = [one.written for one in landed]
    known = [rows for rows in written if rows is not None]
    return sum(known) if len(known) == len(written) else None


def _schema_json(schema: Schema | None) -> list[list[str]] | None:
    return None if schema is None else [list(column) for column in schema]


def _schema_of(data: list[list[str]] | None) -> Schema | None:
    return None if data is None else tuple((name, kind) for name, kind in data)


def missing_columns(before: Schema, now: Schema, later: Collection[str] = (), *, widen: bool = False) -> list[str]:
    """What a table's rows would lose: columns and fields of structs that are missing, or of another type.

    New ones are no loss, nor are narrower numbers than the table's.

    Args:
        before: the table's columns.
        now: the rows' columns.
        later: columns that the table got after the plan of these rows was pinned, as `new_columns` names them. The rows
            may lack them, since their plan is older. If the rows bring other columns, they may not: a column may have
            got another name.
        widen: whether the table's numbers may become as wide as the rows' numbers.
    """
    table, rows = _as_struct(before), _as_struct(now)
    may_lack = () if any(rows.missing(table)) else later
    changed = [
        f"{_dotted(path)} is {new} instead of {old}"
        for path, old, new in table.changed(rows)
        if not _holds(old, new, widen=widen)
    ]
    missing = [
        f"{_dotted(path)} is missing, it was {kind}"
        for path, kind in table.missing(rows)
        if not any(_dotted(path[:depth]) in may_lack for depth in range(1, len(path) + 1))
    ]
    return changed + missing


def _holds(old: ColumnType, new: ColumnType, *, widen: bool) -> bool:
    """Whether a table's number holds another one, perhaps after it is widened."""
    found = wider(str(old), str(new))
    return found is not None and (widen or found == str(old))


def grown(before: Schema, landed: Schema) -> Schema:
    """The columns of a table after rows with these columns landed. It keeps columns and fields that the rows lack."""
    both = _as_struct(before).grown(_as_struct(landed))
    return tuple((name, str(kind)) for name, kind in both.parts.items())


def new_columns(before: Schema, landed: Schema) -> tuple[str, ...]:
    """The columns that rows add to a table, and fields of structs, like `address.zip`."""
    return tuple(_dotted(path) for path, _ in _as_struct(landed).missing(_as_struct(before)))


def _as_struct(columns: Schema) -> ColumnType:
    return ColumnType("struct", {name: ColumnType.parse(kind) for name, kind in columns})


def _dotted(path: Path) -> str:
    return ".".join(path)


def columns_of(given: object) -> tuple[str, ...] | None:
    """The names of columns, given as a sequence or a comma-separated text; None: the system's default ones.

    Raises:
        InvalidRequest: it is something else.
    """
    if given is None:
        return None
    names = given.split(",") if isinstance(given, str) else given
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise InvalidRequest(f"columns are names of columns, like ['value', 'key'], not {given!r}")
    return tuple(name.strip() for name in names if name.strip()) or None
