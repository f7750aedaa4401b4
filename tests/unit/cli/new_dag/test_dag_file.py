"""The file that `airflow streams init` writes: it compiles, holds the names as they are, and needs no formatter."""

from __future__ import annotations

import ast
import subprocess
import sys
from datetime import date, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams import (
    DeltaSink,
    IcebergSink,
    Json,
    ParquetSink,
    PravegaSource,
    PublishTime,
    PulsarSource,
    RecordedCuts,
)
from airflow_provider_streams.cli.new_dag.dag_file import DagFile
from airflow_provider_streams.testing.fake import FakeSource
from tests.unit.cli.new_dag.test_python_source import TEXTS

LINES = TEXTS.map(lambda text: text.replace("\n", "").replace("\r", ""))
DAY = date(2026, 11, 25)
ODD = "quote\" and 'quote'\nimport os\u2028\r# \\"
ODD_NAME = ODD.replace("\n", "").replace("\r", "")
"""Names and paths have no line break; a key may have one."""
SOURCES = (
    PulsarSource("shop/orders/events", value="auto"),
    PulsarSource(["a", "b" * 90, ODD_NAME], conn_id="prod", keys=[ODD], value=Json("id long")),
    PravegaSource("shop/orders", value=Json("id long, customer string, cents long, ship_to struct<city: string>")),
    FakeSource("numbers"),
)
SINKS = (
    ParquetSink("/lake/" + ODD_NAME),
    IcebergSink("shop.orders", conn_id="iceberg_default"),
    DeltaSink("s3://lake/o"),
)
REMARKS = ((), ("rows: " + "word " * 60 + ODD, ODD))


def file_of(source: Any, sink: Any = SINKS[1], **said: Any) -> DagFile:
    is_pravega = isinstance(source, PravegaSource)
    basis = RecordedCuts(timedelta(seconds=90)) if is_pravega else PublishTime()
    return DagFile(
        **{"dag_id": "orders", "basis": basis, "schedule": "@hourly", "timezone": "UTC", "start": DAY} | said,
        source=source,
        sink=sink,
    )


def constants(text: str) -> set[object]:
    return {node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)}


@given(topic=LINES, dag_id=TEXTS, conn_id=LINES, cron=TEXTS, zone=TEXTS, remark=TEXTS)
def test_any_text_stays_the_text_it_is(topic, dag_id, conn_id, cron, zone, remark) -> None:  # noqa: PLR0917
    source = PulsarSource([f"t/n/x{topic.replace('/', '')}"], conn_id=f"c{conn_id}")
    made = file_of(source, dag_id=dag_id, schedule=cron, timezone=zone, remarks=(remark,))
    tree = ast.parse(made.text.encode())
    assert constants(made.text) >= {source.topics[0], f"c{conn_id}", dag_id, cron}
    plain = file_of(PulsarSource("t/n/x", conn_id="c"), dag_id="d", schedule="s", timezone="z")
    assert shape(tree) == shape(ast.parse(plain.text)) or zone == "UTC", "no text adds a statement"


def shape(tree: ast.AST) -> list[str]:
    return [type(node).__name__ for node in ast.walk(tree)]


@given(st.sampled_from(SOURCES), st.sampled_from(SINKS))
def test_the_values_of_the_file_are_the_values_of_the_command(source, sink) -> None:
    made = file_of(source, sink)
    values: dict[str, Any] = {}
    exec(made.text.partition("\nwith ")[0], values)  # noqa: S102
    assert (values["SOURCE"], values["SINK"]) == (source, sink)
    assert values.get("BASIS", made.basis) == made.basis


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    for number, (source, sink, remarks) in enumerate(product(SOURCES, SINKS, REMARKS)):
        (folder / f"dag_{number}.py").write_text(file_of(source, sink, remarks=remarks).text)
    return folder


@pytest.mark.parametrize("width", [88, 120])
def test_the_file_is_formatted(files: Path, width: int) -> None:
    check(files, "format", "--check", "--diff", f"--line-length={width}")


def test_imports_are_sorted_and_used(files: Path) -> None:
    check(files, "check", "--select=E,F,I,W,B,UP,RUF100", "--ignore=E501")


def check(folder: Path, *words: str) -> None:
    ruff = Path(sys.executable).with_name("ruff")
    done = subprocess.run(
        [ruff, *words, "--isolated", "--no-cache", folder], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_events_without_times_get_a_recorder() -> None:
    assert file_of(SOURCES[2]).recorder_id == "orders_cuts"
    assert 'RecordCutsOperator(task_id="record"' in file_of(SOURCES[2]).text
    assert "RecordCutsOperator" not in file_of(SOURCES[0]).text


def test_the_defaults_of_the_system_are_left_out() -> None:
    assert "BASIS" not in file_of(SOURCES[0]).text
    assert "timezone" not in file_of(SOURCES[0]).text
    assert 'timezone="Europe/Berlin"' in file_of(SOURCES[0], timezone="Europe/Berlin").text
