"""`format("pulsar")` with `value_format=debezium`: Spark's tasks read changes as rows, with their metadata."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from airflow_provider_streams.spark import register
from airflow_provider_streams.systems.pulsar.client.endpoint import Endpoint
from tests.integration.pulsar.conftest import Workbench
from tests.unit.formats.change_data.debezium_messages import change, key_of, raw

pytestmark = pytest.mark.pulsar

UNSET = "not set"
POINT = {"x": 1.5, "y": -2.0}
"""A column of several fields, which only the messages tell."""


@pytest.fixture(scope="module")
def bench(pulsar_server: Any) -> Iterator[Workbench]:
    import pulsar

    client = pulsar.Client(**Endpoint(pulsar_server.service_url).client_arguments())
    yield Workbench(pulsar_server, "public/default", client)
    client.close()


def test_changes_are_rows_with_the_columns_of_the_option_and_of_the_messages(spark: Any, bench: Workbench) -> None:
    register(spark)
    topic = bench.topic("changes")
    messages = [
        change("c", {"id": 1, "amount": "12.50", "note": "a", "place": POINT}), {"ts_ms": 1}, b"",
        change("u", {"id": 1, "amount": "12.75", "note": UNSET}), change("d", None, {"id": 1}),
    ]  # fmt: skip
    bench.write(topic, [raw(one) or b"" for one in messages], send=lambda _: {"partition_key": key_of(id=1).decode()})
    options = {
        "service_url": bench.server.service_url, "admin_url": bench.server.admin_url, "topic": topic,
        "value_format": "debezium", "value_schema": "amount decimal(8, 2)", "value_placeholder": UNSET,
    }  # fmt: skip
    frame = spark.read.format("pulsar").options(**options).load()
    assert dict(frame.dtypes)["amount"] == "decimal(8,2)"
    rows = frame.select("id", "amount", "note", "_op", "_unavailable", "_table").orderBy("_position").collect()
    assert [(row.id, row.amount, row.note, row["_op"], row["_unavailable"]) for row in rows] == [
        (1, Decimal("12.50"), "a", "c", []), (1, Decimal("12.75"), None, "u", ["note"]), (1, None, None, "d", []),
    ]  # fmt: skip
    assert [row.asDict(recursive=True)["place"] for row in frame.orderBy("_position").collect()] == [POINT, None, None]
    assert {row["_table"] for row in rows} == {"public.orders"}
