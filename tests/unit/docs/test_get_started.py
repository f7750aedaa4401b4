"""The DAGs on the pages "Get started" are what `airflow streams init` writes."""

from __future__ import annotations

import re
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_streams import IcebergSink, Json, PravegaSource, PublishTime, PulsarSource, RecordedCuts
from airflow_provider_streams.cli.new_dag.dag_file import DagFile
from airflow_provider_streams.cli.new_dag.source_facts import described
from airflow_provider_streams.model.schema.ddl import parse_columns

PAGES = Path(__file__).parents[3] / "docs" / "pages"
COLUMNS = parse_columns("id long not null, customer string not null, cents int")
VALUE = Json("id long, sensor string, celsius double")


def file_of(name: str, source: Any, table: str, basis: Any, remark: str) -> DagFile:
    sink = IcebergSink(table, conn_id="iceberg_default")
    return DagFile(name, source, sink, basis, "* * * * *", "UTC", date(2026, 11, 25), (remark,))


FILES = {
    "get-started": file_of(
        "orders",
        PulsarSource("public/default/orders", value="auto"),
        "shop.orders",
        PublishTime(slack=timedelta(seconds=5)),
        described("public/default/orders", "0", "JSON", COLUMNS),
    ),
    "get-started-pravega": file_of(
        "readings",
        PravegaSource("tour/readings", value=VALUE),
        "factory.readings",
        RecordedCuts(),
        "Values are decoded as json.",
    ),
}


@pytest.mark.parametrize("page", FILES)
def test_the_page_shows_what_init_writes(page: str) -> None:
    shown = re.findall(r"```python\n(.*?)```", (PAGES / f"{page}.md").read_text(), re.DOTALL)
    assert shown == [FILES[page].text]


@pytest.mark.parametrize("page", FILES)
def test_the_page_runs_init_for_this_dag(page: str) -> None:
    (command,) = re.findall(
        r"^airflow streams init .*?[^\\]\n", (PAGES / f"{page}.md").read_text(), re.DOTALL | re.MULTILINE
    )
    made = FILES[page]
    assert f"--output dags/{made.dag_id}.py" in command
    assert f"--sink iceberg:{made.sink.to_json()['table']} --sink-option conn_id=iceberg_default" in command
