"""Change rows: the columns that a database change has in a table, and what a plan pins to decode changes.

| column | what it holds |
|---|---|
| the row's own | the row after the change; of a delete the key, and other columns only if the source logs whole rows |
| `_op` | `r` read by a snapshot, `c` created, `u` updated, `d` deleted, `t` the table was truncated |
| `_before` | the row before the change, as far as the source logs it |
| `_source_ts`, `_ts` | when the source changed the row, and when the connector saw it |
| `_transaction_id`, `_total_order` | the source's transaction, and the change's place in it |
| `_snapshot` | which part of a snapshot the row is from (`first`, `true`, `last`, ..); null for live changes |
| `_table` | `schema.table`; a database without schemas gives `database.table` |
| `_position` | the place in the stream, as text of fixed width: for one key, greater is later |
| `_log_position` | the place in the source's log, as text of fixed width; null if there is none |
| `_source_life` | what identifies one life of the source: connector, name, server |
| `_unavailable` | columns whose value the source did not log: their earlier value holds |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Self, TypeAlias

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.model.schema.type_json import from_json, to_json
from airflow_provider_streams.model.schema.types import ArrayOf, Field, Simple, StructOf

Envelope: TypeAlias = Literal["debezium", "flat", "canal", "maxwell"]
"""What is around a row. `flat`: Debezium's `ExtractNewRecordState` left the row alone, with fields like `__op`."""

ENVELOPES: Final = ("debezium", "flat", "canal", "maxwell")

DecimalText: TypeAlias = Literal["", "base64", "digits"]
"""How texts hold decimals where no schema tells it: both, so far as they differ; as base64; or as digits."""

UNAVAILABLE: Final = "__debezium_unavailable_value"
"""Debezium's default for `unavailable.value.placeholder`."""

KINDS: Final = (
    "change", "tombstone", "heartbeat", "transaction", "schema_change", "logical_message", "truncate", "bootstrap",
)  # fmt: skip
"""What a message of a connector is. A receipt counts all but changes, which are its rows."""

BEFORE: Final = "_before"


def change_type(row: StructOf) -> StructOf:
    """The columns of change rows whose own columns are these.

    Raises:
        InvalidSchema: a column has the name of another one here.
    """
    text, moment = Simple("string"), Simple("timestamp")
    ours = (
        Field("_op", text),
        Field(BEFORE, row),
        Field("_source_ts", moment),
        Field("_ts", moment),
        Field("_transaction_id", text),
        Field("_total_order", Simple("long")),
        Field("_snapshot", text),
        Field("_table", text),
        Field("_position", text),
        Field("_log_position", text),
        Field("_source_life", text),
        Field("_unavailable", ArrayOf(text)),
    )
    names = {one.name for one in ours}
    if taken := next((one.name for one in row.fields if one.name.lower() in names), None):
        raise InvalidSchema(
            taken,
            "a column that every change row gets has the name of the table's own column",
            "Rename it in the connector (transform ReplaceField with `renames`), or read the values as Utf8().",
        )
    return StructOf((*row.fields, *ours))


@dataclass(frozen=True, slots=True)
class ChangeFormat:
    """How the messages of a connector become change rows.

    Args:
        row: the row's own columns.
        envelope: what is around a row.
        keys: the columns of the key; empty: not known, or the table has none.
        placeholder: what stands for a value that the source did not log.
        decimal_text: how texts hold decimals where no schema tells it.
        inferred: columns whose type is what JSON has shown so far, since nothing tells it.
        declared: columns whose type the user declared: other types never widen them.
        schema: Kafka Connect's schema of the messages, as JSON, if a registry has it; empty: messages are JSON.
        has_pairs: whether a payload holds a key and a value, each after its length, as Pulsar's inline pairs do.

    Raises:
        InvalidSchema: a word is unknown, or a key is no column.
    """

    row: StructOf
    envelope: Envelope = "debezium"
    keys: tuple[str, ...] = ()
    placeholder: str = UNAVAILABLE
    decimal_text: DecimalText = ""
    inferred: tuple[str, ...] = ()
    declared: tuple[str, ...] = ()
    schema: str = ""
    has_pairs: bool = False

    def __post_init__(self) -> None:
        if self.envelope not in ENVELOPES:
            raise InvalidSchema(self.envelope, f"changes are in one of {', '.join(ENVELOPES)}")
        if lacking := set(self.keys) - set(self.names):
            raise InvalidSchema(", ".join(sorted(lacking)), "a key is no column of the row")
        change_type(self.row)

    @property
    def names(self) -> Sequence[str]:
        """The names of the row's columns."""
        return [one.name for one in self.row.fields]

    @property
    def type(self) -> StructOf:
        """The columns of its change rows."""
        return change_type(self.row)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "row": to_json(self.row),
            "envelope": self.envelope,
            "keys": list(self.keys),
            "placeholder": self.placeholder,
            "decimal_text": self.decimal_text,
            "inferred": list(self.inferred),
            "declared": list(self.declared),
            "schema": self.schema,
            "has_pairs": self.has_pairs,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The reverse of `to_json`."""
        row = from_json(data["row"])
        if not isinstance(row, StructOf):
            raise InvalidSchema(str(row), "change rows have columns")
        names: dict[str, Any] = {name: tuple(data[name]) for name in ("keys", "inferred", "declared")}
        rest = {name: data[name] for name in ("envelope", "placeholder", "decimal_text", "schema", "has_pairs")}
        return cls(row, **names, **rest)
