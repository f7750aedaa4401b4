"""Every test session has its own, empty AIRFLOW_HOME: it must be set before anything imports Airflow."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

_HOME = Path(tempfile.mkdtemp(prefix="streams-airflow-"))
(_HOME / "dags").mkdir()

os.environ |= {
    "AIRFLOW_HOME": str(_HOME),
    "AIRFLOW__CORE__DAGS_FOLDER": str(_HOME / "dags"),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
}


@pytest.fixture(scope="session")
def airflow_home() -> Path:
    """This session's AIRFLOW_HOME."""
    return _HOME


def pytest_unconfigure() -> None:
    shutil.rmtree(_HOME, ignore_errors=True)
