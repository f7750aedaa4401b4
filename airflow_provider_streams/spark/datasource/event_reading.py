"""Reads a piece of a shard to be looked at: the same reader and decoder as a landing's, but nothing is left out.

Events that cannot be decoded keep their place among the others, with the cause.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.formats.decode_failures import KIND_TEXTS, OTHER_TYPE
from airflow_provider_streams.formats.decoder import Decoded
from airflow_provider_streams.formats.plan_decoder import PayloadDecoder, decoder_of
from airflow_provider_streams.model.plan.plan import Plan, Split
from airflow_provider_streams.spark.datasource.columns import VALUE, Columns
from airflow_provider_streams.spark.datasource.split_reading import decoded_part, needed_columns, where
from airflow_provider_streams.systems.base import StreamSystem
from airflow_provider_streams.systems.declaration import Declaration, PayloadColumns
from airflow_provider_streams.systems.registry import declaration_of

_ALSO_SHOWN = ("properties",)
"""Columns that are worth a look, although they are not read by default."""


class RowMask(Protocol):
    """Chooses rows by their columns."""

    def mask(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        """For each row, whether it is chosen."""

    def check(self, schema: pa.Schema) -> None:
        """See that rows with these columns can be asked; `InvalidRequest`: they cannot."""


class EventRows(NamedTuple):
    """Some events of a batch: the system's columns, and the decoded payloads if they are decoded."""

    stored: pa.RecordBatch
    decoded: Decoded | None

    def last(self, count: int) -> EventRows:
        """The last ones."""
        first = max(0, len(self.stored) - count)
        size = len(self.stored) - first
        return EventRows(self.stored.slice(first), self.decoded and self.decoded.slice(first, size))

    def chosen(self, mask: pa.BooleanArray) -> EventRows:
        """Some of them."""
        return EventRows(self.stored.filter(mask), self.decoded and where(self.decoded, mask))


class EventReading:
    """Reads pieces of one plan.

    Args:
        plan: how payloads are decoded.
        condition: which rows are shown; None: all.
    """

    def __init__(self, plan: Plan, condition: RowMask | None = None) -> None:
        declared = declaration_of(plan.source.system)
        if declared.payload_columns is None:
            raise InvalidRequest(f"events of a {declared.name} source have no payload that could be shown")
        self.declared: Declaration = declared
        self.payload: PayloadColumns = declared.payload_columns
        self._plan, self._condition = plan, condition

    def check(self, system: StreamSystem) -> None:
        """See that the condition can be asked.

        Raises:
            InvalidRequest: it cannot.
            InvalidSchema: nothing can be decoded.
        """
        if self._plan.decoding is not None:
            decoder_of(self._plan.decoding, "")
        if self._condition is not None:
            self._condition.check(self._columns(system).schema)

    def batches(self, system: StreamSystem, split: Split) -> Iterator[EventRows]:
        """The chosen events of a split, batch by batch; raises as `SplitReader`."""
        columns = self._columns(system) if self._condition is not None else None
        wanted = (*self._shown(), *(columns.stored if columns else ()))
        if self._plan.decoding is not None:
            wanted = (*wanted, *needed_columns(self.payload, self._plan.decoding))
        decoder = self._decoder(split)
        with closing(system.read(self._plan, split, tuple(dict.fromkeys(wanted)), on_loss="record")) as reader:
            for batch in reader:
                rows = EventRows(*decoded_part(decoder, batch, self.payload)) if decoder else EventRows(batch, None)
                if self._condition is not None and columns is not None:
                    rows = rows.chosen(self._condition.mask(columns.rows(*rows)))
                yield rows

    def _columns(self, system: StreamSystem) -> Columns:
        """The columns that a condition may name: those of typed rows, and all metadata that is shown.

        Their names are the same where nothing is decoded.
        """
        decoding = self._plan.decoding
        names = Columns.of(system, decoding, None).schema.names
        name_of = self.declared.metadata_name if decoding is not None else str
        columns = Columns.of(system, decoding, tuple(dict.fromkeys([*names, *map(name_of, self.metadata_columns())])))
        if decoding is not None:
            return columns
        return columns.renamed(lambda name: VALUE if name == self.payload.value else self.declared.metadata_name(name))

    def _decoder(self, split: Split) -> PayloadDecoder | None:
        if self._plan.decoding is None:
            return None
        return decoder_of(self._plan.decoding, self.declared.dataset(self._plan.source.names, split.shard))

    def _shown(self) -> tuple[str, ...]:
        more = tuple(name for name in _ALSO_SHOWN if name in self.declared.columns)
        asked = (self.payload.value, self.payload.key, self.payload.publish_time, *self.payload.position)
        return (*(self.declared.default_columns or self.declared.columns), *more, *filter(None, asked))

    def metadata_columns(self) -> tuple[str, ...]:
        """The columns that tell where and when an event is: the default ones, without value and key."""
        own = (self.payload.value, self.payload.key, "key")
        return tuple(name for name in dict.fromkeys(self._shown()) if name not in own)


def cause_of(rows: EventRows, row: int) -> str:
    """Why an event could not be decoded; empty: it was, it is no row, or nothing is decoded."""
    cause = _at(rows.decoded.causes, row) if rows.decoded else None
    if cause in KIND_TEXTS:
        return ""
    return "it is of a record type that is not read" if cause == OTHER_TYPE else str(cause or "")


def kind_of(rows: EventRows, row: int) -> str:
    """What a message of database changes is that changes no row; empty: it changes one, or is bad, or is no such."""
    cause = _at(rows.decoded.causes, row) if rows.decoded else None
    return KIND_TEXTS.get(str(cause), "")


def value_at(column: Any, row: int) -> Any:
    """A value as Python has it; text, if Python has no such value."""
    return _at(column, row)


def _at(column: Any, row: int) -> Any:
    scalar = column[row]
    try:
        return _of_maps(scalar.as_py(), column.type)
    except (ValueError, OverflowError, ArithmeticError):  # a time beyond Python's years
        return str(scalar)


def _of_maps(value: Any, kind: pa.DataType) -> Any:
    """Maps as Python's; Arrow gives lists of pairs."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        return {_hashable(name): _of_maps(one, kind.item_type) for name, one in value}
    if pa.types.is_struct(kind):
        return {one.name: _of_maps(value[one.name], one.type) for one in kind}
    if pa.types.is_list(kind):
        return [_of_maps(one, kind.value_type) for one in value]
    return value


def _hashable(value: Any) -> Any:
    return value if value.__hash__ else str(value)
