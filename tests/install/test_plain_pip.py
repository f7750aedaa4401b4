"""From the wheel, in a fresh environment by plain pip: the README's "Use it", line by line, against a real broker."""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from stream_servers.waiting import wait_until
from tests.install.conftest import ROOT, Wheels, run_script
from tests.integration.pulsar.conftest import Workbench

pytestmark = [pytest.mark.install, pytest.mark.pulsar, pytest.mark.timeout(1800)]

EVENTS = 300


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with nothing but what plain pip makes of it."""
    folder = tmp_path_factory.mktemp("install") / "venv"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    return folder


@pytest.fixture
def orders(pulsar_server):
    """The README's topic, with events of this minute, and the span they were published in."""
    import pulsar

    from airflow_provider_streams.systems.pulsar.client.endpoint import Endpoint

    namespace = f"public/readme-{secrets.token_hex(4)}"
    pulsar_server.create_namespace(namespace)
    client = pulsar.Client(**Endpoint(pulsar_server.service_url).client_arguments())
    bench = Workbench(pulsar_server, namespace, client)
    topic = pulsar_server.create_topic(f"{namespace}/events", 2)
    start = datetime.now(UTC)
    bench.write(topic, [b"%d" % number for number in range(EVENTS)], batch=10)
    end = datetime.now(UTC) + timedelta(milliseconds=5)
    client.close()
    wait_until(lambda: datetime.now(UTC) > end + timedelta(seconds=1), "the window's end")
    yield f"{namespace}/events", f"{start.isoformat()}/{end.isoformat()}"
    pulsar_server.delete_namespace(namespace)


def use_it() -> list[str]:
    """The commands of the README's section, one text each."""
    section = (ROOT / "README.md").read_text().partition("\n## Use it\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"```bash\n(.*?)```", section, re.DOTALL)
    return [command for block in blocks for command in re.split(r"\n(?!\s)", block.strip())]


def test_the_readmes_use_it_works_line_by_line(
    environment: Path, wheels: Wheels, orders, pulsar_server, tmp_path: Path
) -> None:
    topic, window = orders
    mine = {
        "airflow-provider-streams[": f"{wheels.provider}[",
        "pulsar://broker:6650": pulsar_server.service_url,
        "http://broker:8080": pulsar_server.admin_url,
        "shop/orders/events": topic,
        "2026-11-20T10:00Z/2026-11-20T11:00Z": f"{window} --slack 0.5",
        "/lake/orders": str(tmp_path / "lake"),
    }
    script = "\n".join(["set -eu", *use_it()])
    for theirs, ours in mine.items():
        assert theirs in script
        script = script.replace(theirs, ours)
    said = run(script, environment, tmp_path)
    assert f"{EVENTS} rows, complete" in said.stdout, "the read"
    assert f"overlap none   {EVENTS} rows" in said.stdout, "the coverage"
    versions = run("pip list --format json", environment, tmp_path).stdout
    found = {one["name"]: one["version"] for one in json.loads(versions)}
    assert found["pyspark"] == found["pyspark-client"]
    assert not {"pytest", "ruff", "uv"} & found.keys(), "nothing of the developer's"
    count = (
        "import pyarrow.dataset as ds, sys; "
        "rows = ds.dataset(sys.argv[1], exclude_invalid_files=True).to_table(columns=['value']).column(0).to_pylist(); "
        "print(sorted(map(int, rows)) == list(range(int(sys.argv[2]))))"
    )
    checked = subprocess.run(
        [environment / "bin" / "python", "-c", count, tmp_path / "lake", str(EVENTS)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.stdout.strip() == "True", checked.stderr
    for name, table in TABLES.items():
        lands = f"--reader {name} {table.format(folder=tmp_path)}"
        command = f"airflow streams read --topic {topic} --window {window} --slack 0.5 {lands}"
        said = run(f"{_connection(script)}\n{_catalog(tmp_path)}\n{command}", environment, tmp_path)
        assert f"{EVENTS} rows, complete" in said.stdout, "the README's install line is enough for every table it names"
    typed = (
        f"airflow streams read --topic {topic} --window {window} --slack 0.5 --reader typed --path {tmp_path / 'typed'}"
    )
    said = run(f"{_connection(script)}\n{typed} --value-format utf8", environment, tmp_path)
    assert f"{EVENTS} rows, complete" in said.stdout, "rows of text"
    assert run(f"python -c '{DECODES}'", environment, tmp_path).stdout.split() == ["7", "7", "False"]


TABLES = {
    "iceberg": "--sink iceberg:shop.orders --sink-option conn_id=iceberg_default",
}
"""Where rows land according to the README, other than in a folder."""


def _catalog(folder: Path) -> str:
    """The connection of the Iceberg table."""
    where = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}/ware"}
    told = json.dumps({"conn_type": "iceberg", "extra": where})
    return f"export AIRFLOW_CONN_ICEBERG_DEFAULT='{told}'"


DECODES = """
import importlib.util
import pyarrow as pa
from airflow_provider_streams import Avro, Json
from airflow_provider_streams.formats.decoder import Decoder, Payloads
from airflow_provider_streams.formats.schema.pinned_schemas import decoding_of
schema = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}
for payload, data in ((Avro(schema), bytes([14])), (Json("id long"), b"{\\"id\\": 7}")):
    decoded = Decoder(decoding_of(payload, None, {}), "t").decode(Payloads(pa.array([data])))
    print(decoded.value[0].as_py()["id"])
print(importlib.util.find_spec("fastavro") is not None)
"""
"""Avro and JSON need nothing that is only there where this package is developed."""


def _connection(script: str) -> str:
    """The README's line that says where the broker is."""
    (line,) = re.findall(r"^export AIRFLOW_CONN_PULSAR_DEFAULT='.*?'$", script, re.DOTALL | re.MULTILINE)
    return str(line)


def run(script: str, environment: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """A script with the environment's programs."""
    path = f"{environment / 'bin'}:{os.environ['PATH']}"
    return run_script(script, folder, {"PATH": path, "AIRFLOW_HOME": str(folder / "airflow")})
