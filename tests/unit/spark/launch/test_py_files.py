"""The archive for executors: everything they need, nothing of Airflow's side, the same bytes each time."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from airflow_provider_streams.spark.launch.py_files import executor_archive


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return executor_archive()


def test_it_is_made_once(archive: Path) -> None:
    made = archive.stat().st_mtime_ns
    assert executor_archive() == archive
    assert archive.stat().st_mtime_ns == made


def test_an_archive_that_someone_changed_is_not_used(archive: Path) -> None:
    good = archive.read_bytes()
    archive.write_bytes(b"anything")
    assert executor_archive().read_bytes() == good


def test_it_holds_no_room_of_airflows_side(archive: Path) -> None:
    names = zipfile.ZipFile(archive).namelist()
    rooms = {name.split("/")[1] for name in names if name.startswith("airflow_provider_streams/")}
    files = {"__init__.py", "version.py", "background_work.py", "redaction.py"}
    assert rooms == {*files, "errors", "model", "systems", "formats", "lake", "spark", "testing"}


def test_it_holds_the_folders_of_the_systems_that_others_declare(archive: Path) -> None:
    names = zipfile.ZipFile(archive).namelist()
    assert {"files_system/__init__.py", "files_system/declaration.py", "files_system/reader.py"} <= set(names)
    ours = {name for name in names if name.startswith("airflow_provider_streams/testing")}
    folders = {name.rpartition("/")[0] for name in ours}
    assert folders == {"airflow_provider_streams/testing", "airflow_provider_streams/testing/fake"}
    assert "airflow_provider_streams/testing/__init__.py" in ours


def test_its_job_can_be_imported_from_it(archive: Path, tmp_path: Path) -> None:
    code = (
        "import airflow_provider_streams.spark.datasource.source; "
        "import airflow_provider_streams.spark.job.job as job; print(job.__file__)"
    )
    site = [path for path in sys.path if path.endswith("site-packages")]
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={"PYTHONPATH": ":".join([str(archive), *site])},
    )
    assert str(archive) in done.stdout, done.stderr


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert executor_archive().is_file()
