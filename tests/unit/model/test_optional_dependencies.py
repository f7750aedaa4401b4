"""What is optional, and what is said where it is missing."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import airflow_provider_streams
from airflow_provider_streams import DeltaSink, IcebergSink, ParquetSink, PulsarSource
from airflow_provider_streams.airflow_runtime import window_context as places
from airflow_provider_streams.errors import MissingDependency
from airflow_provider_streams.model.optional_dependencies import MODULES, importing, require
from airflow_provider_streams.spark.launch import preflight

PROJECT = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]


def test_every_extra_of_the_package_is_known():
    assert MODULES.keys() == PROJECT["optional-dependencies"].keys()


@pytest.mark.parametrize(("extra", "module"), [(extra, one) for extra, modules in MODULES.items() for one in modules])
def test_a_missing_module_names_the_extra_and_the_command(extra, module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    for guarded in (lambda: require(extra), lambda: imported(extra, module)):
        with pytest.raises(MissingDependency) as raised:
            guarded()
        assert f"pip install 'airflow-provider-streams[{extra}]'" in str(raised.value)
        assert raised.value.module in MODULES[extra]


def imported(extra, module):
    with importing(extra):
        __import__(module)


def test_an_error_of_our_own_imports_is_no_missing_extra():
    with pytest.raises(ModuleNotFoundError), importing("iceberg"):
        import airflow_provider_streams.no_such_module  # noqa: F401


def test_there_is_one_guard():
    files = Path(airflow_provider_streams.__file__).parent.rglob("*.py")
    others = [file for file in files if file.name != "optional_dependencies.py"]
    assert [str(file) for file in others if "raise MissingDependency" in file.read_text()] == []


@pytest.mark.parametrize(
    ("module", "extra", "sink"),
    [
        ("pyiceberg", "iceberg", IcebergSink("lake.orders")),
        ("deltalake", "delta", DeltaSink("/lake/orders")),
        ("pyspark", "spark", ParquetSink("/lake/orders")),
        ("google_crc32c", "pulsar", ParquetSink("/lake/orders")),
        ("google.protobuf", "pulsar", ParquetSink("/lake/orders")),
    ],
)
def test_a_read_that_lands_is_refused_before_it_plans(module, extra, sink, monkeypatch):
    def opened():
        raise AssertionError("the journal is opened after that")

    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(preflight, "_installed", lambda *_: {})
    monkeypatch.setattr(places, "open_journal", opened)
    with pytest.raises(MissingDependency) as raised, places.open_context(PulsarSource("a/b/c"), lands_in=sink):
        pass
    assert raised.value.extra == extra
    with pytest.raises(AssertionError), places.open_context(PulsarSource("a/b/c")):
        pass


def test_every_way_into_an_iceberg_table_names_the_extra():
    seen = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False)
    assert seen.stdout == "read_state check_rows open iceberg iceberg iceberg", seen.stderr


WITHOUT = """
import sys
sys.modules["pyiceberg"] = None
import pyarrow as pa
from airflow_provider_streams import IcebergSink
from airflow_provider_streams.errors import MissingDependency
from airflow_provider_streams.lake.iceberg.writer import IcebergWriter

sink, schema = IcebergSink("lake.orders", conn_id="x"), pa.schema([])
ways = {
    "read_state": lambda: IcebergWriter.read_state(sink),
    "check_rows": lambda: IcebergWriter.check_rows(sink, schema, None),
    "open": lambda: IcebergWriter(sink, None, None).open(schema),
}
said = []
for way in ways.values():
    try:
        way()
    except MissingDependency as error:
        said.append(error.extra)
print(*ways, *said, end="")
"""
