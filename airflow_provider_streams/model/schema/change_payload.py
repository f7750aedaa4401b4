"""What users say about streams of database changes: `value=Debezium()`. A plan pins its meaning (`change_rows`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.model.parse_time_value import ParseTimeValue
from airflow_provider_streams.model.schema.change_rows import UNAVAILABLE
from airflow_provider_streams.model.schema.columns_text import Columns, columns_text
from airflow_provider_streams.model.schema.ddl import parse_columns


@dataclass(frozen=True, slots=True)
class Debezium(ParseTimeValue):
    """Changes of a database's tables, as Debezium's connectors write them.

    Args:
        columns: the row's columns where no schema in the messages tells them, written as in `Json`:
            `id long, name string, amount decimal(12, 2)`. They also override the types of such a schema, as far as a
            value of the one is exactly a value of the other.
        values: how the values of messages are written: `auto`, by the system's schema, or else JSON; or `json`.
        placeholder: the connector's `unavailable.value.placeholder`.

    Raises:
        InvalidSchema: it is no such list, `values` is another word, or the placeholder is empty.
    """

    format: ClassVar[str] = "debezium"

    columns: str
    values: Literal["auto", "json"]
    placeholder: str

    def __init__(
        self, columns: Columns = "", *, values: Literal["auto", "json"] = "auto", placeholder: str = UNAVAILABLE
    ) -> None:
        if values not in ("auto", "json"):
            raise InvalidSchema(f"values={values!r}"[:80], "it is neither 'auto' nor 'json'", "Leave it out.")
        if not placeholder:
            raise InvalidSchema("placeholder", "an empty text is a value like others", "Leave it out.")
        object.__setattr__(self, "columns", _checked(columns))
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "placeholder", placeholder)


@dataclass(frozen=True, slots=True)
class Canal(ParseTimeValue):
    """Changes of MySQL tables, as Canal writes them as JSON (`flatMessage`). All its values are texts.

    Args:
        columns: the row's columns, written as in `Json`. Columns that are not there have the type of `mysqlType`.

    Raises:
        InvalidSchema: it is no such list.
    """

    format: ClassVar[str] = "canal"

    columns: str

    def __init__(self, columns: Columns = "") -> None:
        object.__setattr__(self, "columns", _checked(columns))


@dataclass(frozen=True, slots=True)
class Maxwell(ParseTimeValue):
    """Changes of MySQL tables, as Maxwell writes them as JSON.

    Args:
        columns: the row's columns, written as in `Json`. Columns that are not there have the type that JSON shows.

    Raises:
        InvalidSchema: it is no such list.
    """

    format: ClassVar[str] = "maxwell"

    columns: str

    def __init__(self, columns: Columns = "") -> None:
        object.__setattr__(self, "columns", _checked(columns))


def _checked(columns: Columns) -> str:
    text = columns_text(columns) if columns else ""
    if text:
        parse_columns(text)
    return text


ChangePayload = Debezium | Canal | Maxwell
