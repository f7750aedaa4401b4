from __future__ import annotations

import json
import platform
import sys
from importlib import metadata

from airflow_provider_streams.cli.commands import version
from airflow_provider_streams.spark.launch.java_search import JavaMissing
from airflow_provider_streams.version import __version__


def test_versions_as_json(streams, capsys):
    streams("version", "--json")
    found = json.loads(capsys.readouterr().out)
    assert found["airflow-provider-streams"] == {"version": __version__, "origin": None}
    assert found["python"] == {"version": platform.python_version(), "origin": sys.executable}
    assert found["pyarrow"]["version"] == metadata.version("pyarrow")


def test_what_is_missing_is_said(streams, capsys, monkeypatch):
    def find_java():
        raise JavaMissing(("there is no java in any directory of PATH",))

    monkeypatch.setattr(version, "find_java", find_java)
    monkeypatch.setattr(version, "_PACKAGES", ("no-such-package",))
    streams("version")
    *_, java, package = capsys.readouterr().out.splitlines()
    assert java.split() == [
        "java",
        "not",
        "installed",
        "there",
        "is",
        "no",
        "java",
        "in",
        "any",
        "directory",
        "of",
        "PATH",
    ]
    assert package.split() == ["no-such-package", "not", "installed"]


def test_pyspark_is_not_imported(streams, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    streams("version", "--json")
    assert json.loads(capsys.readouterr().out)["pyspark"]["version"]
