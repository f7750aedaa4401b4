"""`airflow streams ..` in this process, and reads without Spark."""

from __future__ import annotations

import argparse
import json
import warnings

import pytest

from airflow_provider_streams.cli.parser import get_streams_cli_commands
from airflow_provider_streams.testing.landing import run_without_spark


@pytest.fixture
def streams(tmp_path, monkeypatch):
    """Runs `airflow streams ..` in this process."""
    from airflow.cli.cli_parser import _add_command

    connection = {"conn_type": "fake", "extra": {"events": "60", "password": "", "token": "canary-77aa"}}
    monkeypatch.setenv("AIRFLOW_CONN_FAKE_DEFAULT", json.dumps(connection))
    journal = {"conn_type": "sqlite", "host": str(tmp_path / "journal.db")}
    monkeypatch.setenv("AIRFLOW_CONN_STREAMS_JOURNAL", json.dumps(journal))
    monkeypatch.setenv("_AIRFLOW_PROCESS_CONTEXT", "")
    parser = argparse.ArgumentParser(prog="airflow")
    subparsers = parser.add_subparsers()
    for command in get_streams_cli_commands():
        _add_command(subparsers, command)

    def run(*arguments: str) -> None:
        args = parser.parse_args(["streams", *arguments])
        args.func(args)

    return run


@pytest.fixture
def no_spark(monkeypatch):
    """Lands without Spark, and warns as PySpark does."""
    from airflow_provider_streams.airflow_runtime import spark_launch

    def launch(work, *_):
        warnings.warn("as PySpark does", FutureWarning, stacklevel=1)
        return run_without_spark(work)

    monkeypatch.setattr(spark_launch, "launch", launch)
