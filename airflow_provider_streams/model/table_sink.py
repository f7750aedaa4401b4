"""A sink that is any table of Spark's catalogs. Values only; `spark/tables` writes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Self, get_args

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.sink import PartitionBy
from airflow_provider_streams.model.target import as_one, example

SCHEME = "spark-table"
"""Of its asset."""


@dataclass(frozen=True, slots=True)
class TableSink:
    """A table of a catalog that Spark's settings name, with the columns `window_start` and `window_end`.

    Each window is replaced by Spark's own `overwrite`, so the table's format must know that. The table has one owner: a
    reader of a source, written into its properties. It is made when it does not exist.

    Args:
        table: its name, catalog and namespace first: `prod.shop.orders`; with placeholders, like `prod.shop.{topic}`, a
            table for each topic or stream of the source.
        partition_by: how a table that is made is partitioned: by `window_start` itself, or its hour or day; None: not.
        widen: whether the table gets the columns that its rows have and it has not; otherwise they are refused.
        using: the format of a table that is made, like `iceberg`; None: the catalog's own.

    Raises:
        InvalidRequest: no such name.
    """

    kind: ClassVar[str] = "table"
    named_by: ClassVar[str] = "table"

    table: str
    partition_by: PartitionBy | None = "window"
    widen: bool = False
    using: str | None = None

    def __post_init__(self) -> None:
        if not _TABLE.fullmatch(example(self.table)):
            raise InvalidRequest(
                f"a table of Spark's is named with its catalog and namespace, like 'prod.shop.orders', not "
                f"{self.table!r}: without them, each session would mean another one. Names have letters, digits, - and "
                "_, and stand between points"
            )
        if self.partition_by not in (None, *get_args(PartitionBy)):
            raise InvalidRequest(
                f"table {self.table}: partition_by is 'window', 'hour', 'day' or None, not {self.partition_by!r}"
            )
        if self.using is not None and not _FORMAT.fullmatch(self.using):
            raise InvalidRequest(f"table {self.table}: using is a format's name, like 'iceberg', not {self.using!r}")

    def __str__(self) -> str:
        return self.table

    @property
    def asset_uri(self) -> str:
        """`spark-table://<catalog>/<namespace>/<table>`."""
        return f"{SCHEME}://{as_one(self.table).replace('.', '/')}"

    def to_json(self) -> dict[str, Any]:
        """`{"kind", "table", "partition_by", "widen", "using"}`."""
        return {"kind": self.kind, **{name: getattr(self, name) for name in _NAMES}}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The reverse of `to_json`."""
        return cls(**{name: data[name] for name in _NAMES})


_NAMES = ("table", "partition_by", "widen", "using")
_TABLE = re.compile(r"[\w-]+(\.[\w-]+){2,}", re.ASCII)
_FORMAT = re.compile(r"[\w.]+", re.ASCII)
