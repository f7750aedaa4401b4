"""Which file has a DAG's name already."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.models.dag import DagModel

from airflow_provider_streams.cli.new_dag.dag_id_owner import file_in_database, file_in_folder


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AIRFLOW__CORE__DAGS_FOLDER", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    "text",
    [
        'DAG("orders")',
        'with DAG(schedule=None, dag_id="orders"): pass',
        'sdk.DAG("orders")',
        "@dag\ndef orders(): pass",
        "@dag(schedule=None)\ndef orders(): pass",
        '@sdk.dag("orders")\ndef it(): pass',
        '@dag(dag_id="orders")\ndef it(): pass',
    ],
)
def test_each_way_to_name_a_dag_is_found(folder: Path, text: str) -> None:
    (folder / "it.py").write_text(text)
    assert file_in_folder("orders", folder / "new.py") == folder / "it.py"


@pytest.mark.parametrize(
    "text",
    [
        'NAME = "orders"',
        'DAG("orders_cuts")',
        "def orders(): pass",
        '@dag(dag_id="it")\ndef orders(): pass',
        '@dag("it")\ndef orders(): pass',
        'DAG("orders"',
    ],
)
def test_other_uses_of_the_word_do_not_count(folder: Path, text: str) -> None:
    (folder / "it.py").write_text(text)
    assert file_in_folder("orders", folder / "new.py") is None


def test_the_new_file_itself_does_not_count(folder: Path) -> None:
    (folder / "it.py").write_text('DAG("orders")')
    assert file_in_folder("orders", folder / "sub" / ".." / "it.py") is None


def test_a_folder_that_does_not_exist_has_no_dag(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__DAGS_FOLDER", str(folder / "nowhere"))
    assert file_in_folder("orders", folder / "new.py") is None


def known(monkeypatch: pytest.MonkeyPatch, *, is_stale: bool) -> None:
    model = SimpleNamespace(fileloc="/dags/old.py", is_stale=is_stale)
    monkeypatch.setattr(DagModel, "get_current", lambda dag_id: model if dag_id == "orders" else None)


def test_the_database_knows_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    known(monkeypatch, is_stale=False)
    assert file_in_database("orders", Path("new.py")) == Path("/dags/old.py")
    assert file_in_database("others", Path("new.py")) is None
    assert file_in_database("orders", Path("/dags/old.py")) is None


def test_a_dag_whose_file_is_gone_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    known(monkeypatch, is_stale=True)
    assert file_in_database("orders", Path("new.py")) is None


def test_without_a_database_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: str) -> None:
        raise RuntimeError("no such table: dag")

    monkeypatch.setattr(DagModel, "get_current", fail)
    assert file_in_database("orders", Path("new.py")) is None
