"""A sink that is any table of Spark's catalogs. Values only; `spark/catalog` writes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.booleans import check_booleans
from airflow_provider_streams.model.sinks.sink import FormatSink, PartitionBy, check_partition_by, refuse_apply
from airflow_provider_streams.model.sinks.table_name import as_one, example
from airflow_provider_streams.model.sinks.templates import is_template
from airflow_provider_streams.model.text_arguments import check_names, check_optional_names

SCHEME = "spark-table"
"""Of its asset."""


@dataclass(frozen=True, slots=True)
class TableSink(FormatSink):
    """A table of a catalog that Spark's settings name, with the columns `window_start` and `window_end`.

    Each window is replaced by Spark's own `overwrite`, so the table's format must know that. The table has one owner: a
    reader of a source, written into its properties. It is made when it does not exist.

    Args:
        table: its name, catalog and namespace first: `prod.shop.orders`; with placeholders, like `prod.shop.{topic}`, a
            table for each topic or stream of the source.
        partition_by: how a new table is partitioned: by `window_start` itself, or its hour or day; None: not.
        widen: whether the table gets new columns, fields and wider numbers of its rows; otherwise they are refused.
        using: the format of a new table, like `iceberg`; None: the catalog's own.
        apply: None: changes are not applied to such a table.

    Raises:
        InvalidRequest: there can be no table of this name, or `apply` is given.
    """

    kind: ClassVar[str] = "table"
    named_by: ClassVar[str] = "table"

    table: str
    partition_by: PartitionBy | None = "window"
    widen: bool = False
    using: str | None = None
    apply: None = None

    def __post_init__(self) -> None:
        check_names("TableSink", table=self.table)
        check_optional_names("TableSink", using=self.using)
        check_booleans("TableSink", widen=self.widen)
        refuse_apply("TableSink", self.apply)
        if not is_template(self.table) and not _TABLE.fullmatch(example(self.table)):
            raise InvalidRequest(
                f"a table of Spark's is named with its catalog and namespace, like 'prod.shop.orders', not "
                f"{self.table!r}: without them, each session would mean another one. Names have letters, digits, - and "
                "_, and stand between points"
            )
        check_partition_by(self.table, self.partition_by)
        if self.using is not None and not _FORMAT.fullmatch(self.using):
            raise InvalidRequest(f"table {self.table}: using is a format's name, like 'iceberg', not {self.using!r}")

    def __str__(self) -> str:
        return self.table

    @property
    def location(self) -> str:
        """`spark-table://<catalog>/<namespace>/<table>`."""
        return f"{SCHEME}://{as_one(self.table).replace('.', '/')}"


_TABLE = re.compile(r"[\w-]+(\.[\w-]+){2,}", re.ASCII)
_FORMAT = re.compile(r"[\w.]+", re.ASCII)
