"""What OpenLineage's own provider sends about a read, caught from its own file transport."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from stream_servers.waiting import wait_until
from tests.integration.pulsar.conftest import written_from

pytestmark = [pytest.mark.dagtest, pytest.mark.pulsar]


def dag_file(source: str, start: datetime, end: datetime, lake: Path) -> str:
    return dedent(
        f"""
        from datetime import datetime, timedelta
        from airflow.sdk import DAG
        from airflow_provider_streams import ParquetSink, PublishTime, PulsarSource, Window
        from airflow_provider_streams.operators.read import ReadWindowOperator

        window = Window(datetime.fromisoformat({start.isoformat()!r}), datetime.fromisoformat({end.isoformat()!r}))
        with DAG("lineage", schedule=None, start_date=datetime(2026, 11, 1)):
            ReadWindowOperator(
                task_id="read",
                source=PulsarSource({source!r}),
                window=window,
                basis=PublishTime(timedelta(0)),
                sink=ParquetSink({str(lake)!r}),
            )
        """
    )


@pytest.mark.slow
def test_the_provider_of_openlineage_sends_the_ranges_of_a_read(
    migrated_database, pulsar_server, pulsar_namespace, tmp_path
):
    import pulsar

    topic = pulsar_server.create_topic(f"{pulsar_namespace}/orders")
    client = pulsar.Client(pulsar_server.service_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    producer = client.create_producer(topic, batching_enabled=False)
    start = written_from()
    places = [producer.send(b"%d" % number) for number in range(7)]
    client.close()
    end = datetime.now(UTC) + timedelta(milliseconds=5)
    wait_until(lambda: datetime.now(UTC) > end, "the window's end")
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags" / "lineage.py").write_text(dag_file(topic, start, end, tmp_path / "lake"))
    events = caught(tmp_path, migrated_database, pulsar_server)

    (complete,) = [one for one in events if one["eventType"] == "COMPLETE" and one["job"]["name"] == "lineage.read"]
    (read,), (table,) = complete["inputs"], complete["outputs"]
    assert (read["namespace"], read["name"]) == ("pulsar://pulsar_default", topic.removeprefix("persistent://"))
    (found,) = read["facets"]["streamsRanges"]["facts"]
    first, last = places[0], places[-1]
    assert found["start"].startswith(f"{first.ledger_id()}:{first.entry_id()}:")
    assert found["end"].startswith(f"{last.ledger_id()}:{last.entry_id() + 1}:")
    assert (found["shard"], found["rows"]) == (topic, 7)
    assert (table["namespace"], table["name"]) == ("file", str(tmp_path / "lake"))
    assert table["outputFacets"]["outputStatistics"]["rowCount"] == 7
    assert complete["run"]["facets"]["streamsWindow"]["facts"]["verdict"] == "complete"


def caught(folder: Path, database: Path, server: Any) -> list[dict[str, Any]]:
    """The events of a run of `lineage` in its own process: the provider listens from Airflow's first import on."""
    shutil.copy(database, folder / "airflow.db")
    addresses = {"service_url": server.service_url, "admin_url": server.admin_url}
    environment = {
        **os.environ,
        "AIRFLOW_HOME": str(folder),
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder / "dags"),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{folder}/airflow.db",
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps({"type": "file", "log_file_path": str(folder / "events")}),
        "AIRFLOW_CONN_PULSAR_DEFAULT": json.dumps({"conn_type": "pulsar", "extra": addresses}),
        "AIRFLOW_CONN_STREAMS_JOURNAL": json.dumps({"conn_type": "sqlite", "host": str(folder / "journal.db")}),
    }
    command = [sys.executable, "-m", "airflow", "dags", "test", "lineage"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]
    found = [json.loads(line) for file in folder.glob("events*") for line in file.read_text().splitlines()]
    assert found, done.stdout[-6000:] + done.stderr[-6000:]
    return found
