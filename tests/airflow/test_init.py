"""`airflow streams init` on real servers: the files that it writes run as DAGs, and land typed rows."""

from __future__ import annotations

import argparse
import json
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.utils.state import DagRunState

from airflow_provider_streams.cli.parser import get_streams_cli_commands
from airflow_provider_streams.hooks.pravega import PravegaHook
from airflow_provider_streams.systems.pravega.operations.stream_settings import StreamSettings
from tests.airflow.shop import HOURS, TORN, succeeded

pytestmark = pytest.mark.dagtest


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs `airflow streams ..` in this process."""
    from airflow.cli.cli_parser import _add_command

    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", "")
    parser = argparse.ArgumentParser(prog="airflow")
    subparsers = parser.add_subparsers()
    for command in get_streams_cli_commands():
        _add_command(subparsers, command)

    def run(*words: str) -> None:
        args = parser.parse_args(["streams", *words])
        args.func(args)

    return run


def dags_of(file: Path) -> dict[str, Any]:
    """The DAGs of a file, by name."""
    from airflow_provider_streams.airflow_features import dag_bags

    bag = dag_bags().DagBag(dag_folder=str(file))
    assert bag.import_errors == {}
    return dict(bag.dags)


@pytest.mark.pulsar
@pytest.mark.usefixtures("clock_ahead")
@pytest.mark.parametrize("kind", ["parquet", "iceberg", "delta"])
def test_a_topic_with_a_schema_lands_typed_rows(  # noqa: PLR0917
    streams, dag_test, pulsar, shop_orders, tmp_path, kind, monkeypatch, capsys
) -> None:
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "warehouse": f"file://{tmp_path}/w"}
    monkeypatch.setenv("AIRFLOW_CONN_ICEBERG_DEFAULT", json.dumps({"conn_type": "iceberg", "extra": catalog}))
    tables = {
        "parquet": ["--path", f"{pulsar}/orders"],
        "iceberg": ["--sink", "iceberg:shop.orders", "--sink-option", "conn_id=iceberg_default"],
        "delta": ["--sink", f"delta:{pulsar}/orders"],
    }
    file = tmp_path / "dag.py"
    streams("init", "pulsar", "shop/orders/events", *tables[kind], "--dag-id", f"made_{kind}", "--output", str(file))
    said = capsys.readouterr().out
    shown = "number long not null, customer string not null, cents long not null, at long not null"
    assert f"rows: shop/orders/events, schema version 0 (JSON): {shown}" in said
    assert "retention: events are held without limit" in said
    assert "airflow connections add" not in said
    assert "WARNING" not in said
    got = succeeded(dag_test(dags_of(file)[f"made_{kind}"], partition=HOURS[0].start))
    assert (got["rows"], got["verdict"]) == (12, "complete")
    assert TORN > 12, "no order of this hour is torn"


@pytest.mark.pulsar
def test_retention_that_is_too_short_is_a_warning(streams, pulsar, pulsar_server, pulsar_namespace, tmp_path, capsys):  # noqa: PLR0917
    pulsar_server.create_topic(f"{pulsar_namespace}/orders")
    pulsar_server.set_retention(pulsar_namespace, minutes=60)
    file = tmp_path / "dag.py"
    streams("init", "pulsar", f"{pulsar_namespace}/orders", "--path", "/lake", "--output", str(file))
    said = capsys.readouterr().out
    assert "WARNING Retention: events are needed for 7d 1h, and held for 1h" in said
    assert "rows: There is no schema, so values are bytes" in said
    text = file.read_text()
    assert "# Retention: events are needed for 7d 1h" in text
    assert 'value="auto"' not in text


@pytest.mark.pulsar
def test_a_topic_that_is_not_there_is_named_and_nothing_is_written(  # noqa: PLR0917
    streams, pulsar, pulsar_server, pulsar_namespace, tmp_path, capsys
):
    file = tmp_path / "dag.py"
    with pytest.raises(SystemExit):
        streams("init", "pulsar", f"{pulsar_namespace}/nothing", "--path", "/lake", "--output", str(file))
    assert "SourceNotFound" in capsys.readouterr().err
    assert not file.exists()


@pytest.mark.pravega
def test_the_recorder_and_the_reader_of_a_stream_run(  # noqa: PLR0917
    streams, dag_test, pravega, pravega_scope, tmp_path, monkeypatch, capsys
) -> None:
    journal = {"conn_type": "sqlite", "host": str(tmp_path / "journal.db")}
    monkeypatch.setenv("AIRFLOW_CONN_STREAMS_JOURNAL", json.dumps(journal))
    with closing(PravegaHook()) as hook:
        hook.create_stream(f"{pravega_scope}/readings", StreamSettings(retention=timedelta(days=1)))
    file = tmp_path / "dag.py"
    columns = ("--value-format", "json", "--value-schema", "id long, celsius double")
    where = ("--path", str(tmp_path / "lake"), "--output", str(file))
    streams("init", "pravega", f"{pravega_scope}/readings", *columns, *where)
    said = capsys.readouterr().out
    assert "WARNING Retention" in said
    assert "airflow dags unpause readings_cuts" in said
    dags = dags_of(file)
    assert dags.keys() == {"readings", "readings_cuts"}
    assert dag_test(dags["readings_cuts"], logical_date=datetime.now(UTC)).state == DagRunState.SUCCESS
    assert dags["readings"].get_task("read").source.stream == f"{pravega_scope}/readings"
