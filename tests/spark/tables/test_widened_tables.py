"""What our own writers landed, read by Spark: windows with narrower and wider numbers are one table."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_streams.lake.iceberg.catalogs.catalog import catalog_of
from tests.integration.lake.kept_tables import table_in
from tests.integration.lake.landing import hour, land
from tests.integration.lake.test_type_widening import ALSO_OLD, NEW, OLD, WIDE, narrow, wide


@pytest.mark.parametrize("kind", ["iceberg", "delta"])
def test_windows_whose_numbers_became_wider_are_one_table(spark, tmp_path, kind):
    with table_in(kind, tmp_path, widen=True) as table:
        for number, rows in enumerate([narrow(OLD), narrow(ALSO_OLD), wide(NEW)]):
            land(table.sink, hour(number), rows)
        place = table.sink.path if kind == "delta" else _newest(table.sink)
    told = spark.read.format(kind).load(place)
    found = told.select(*WIDE.names).orderBy("id").collect()
    assert [row.asDict(recursive=True) for row in found] == [_told(one) for one in (OLD, ALSO_OLD, NEW)]
    assert told.where("whole < 0").count() == 1


def _newest(sink: Any) -> str:
    return catalog_of(sink).load_table(sink.table).metadata_location


def _told(row: dict[str, Any]) -> dict[str, Any]:
    """Spark's maps are dictionaries."""
    return {name: dict(one) if name in {"by_name", "deep"} else one for name, one in row.items()}
