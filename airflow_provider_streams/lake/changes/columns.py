"""The columns of change rows, and of the tables that they are applied to."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from airflow_provider_streams.lake.changes.arrow_compute import pc
from airflow_provider_streams.model.changes.expressions import Column

OP: Final = "_op"
POSITION: Final = "_position"
LOG_POSITION: Final = "_log_position"
SOURCE_TIME: Final = "_source_ts"
LIFE: Final = "_source_life"
UNAVAILABLE: Final = "_unavailable"
TABLE: Final = "_table"

_FACTS: Final = ("_before", "_ts", "_transaction_id", "_total_order", "_snapshot")
CHANGE_COLUMNS: Final = frozenset((OP, POSITION, LOG_POSITION, SOURCE_TIME, LIFE, UNAVAILABLE, TABLE, *_FACTS))
"""What a change row says of the change; a table does not get these columns."""

SEQUENCE: Final = "_sequence"
SNAPSHOT_POSITION: Final = "_snapshot_position"
PARTIAL: Final = "_partial"
LIVE: Final = "_live"
KIND: Final = "_kind"

VERSION_FIELDS: Final[tuple[pa.Field[Any], ...]] = (
    pa.field(SEQUENCE, pa.string()),
    pa.field(POSITION, pa.string()),
    pa.field(SNAPSHOT_POSITION, pa.string()),
    pa.field(PARTIAL, pa.map_(pa.string(), pa.string())),
)
"""The version of a row in a table of latest state.

`_sequence` and `_position` are those of its latest change, or null if only a snapshot gave the row.
`_snapshot_position` is the place of the snapshot's row, or null. `_partial` is null for most rows. Otherwise it has the
columns that another change set, with that change's sequence and position, or an empty text if none did.
"""

SEPARATOR: Final = "\t"
"""Between parts of a version. It is less than any character that parts have."""


class UnusableChanges(Exception):
    """Changes that have no place in the order, or no row; the engines name the table."""


def column_at(rows: pa.Table, path: Column) -> Any:
    """A column, or a field of a struct. `UnusableChanges`: there is none."""
    if path[0] not in rows.column_names:
        raise UnusableChanges(f"the changes have no column {path[0]!r}; they have {', '.join(rows.column_names)}")
    column: Any = rows[path[0]]
    for depth, name in enumerate(path[1:], 1):
        type_ = column.type
        if not isinstance(type_, pa.StructType) or name not in type_.names:
            raise UnusableChanges(f"column {'.'.join(path[:depth])!r} of the changes has no field {name!r}")
        column = pc.struct_field(column, name)
    return column
