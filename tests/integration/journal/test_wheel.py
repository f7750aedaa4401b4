from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

from airflow_provider_streams.journal import migrate

PACKAGE = Path(migrate.__file__).parent
ROOT = PACKAGE.parent.parent


def test_the_wheel_holds_the_migrations(tmp_path):
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([uv, "build", "--wheel", "--out-dir", tmp_path], cwd=ROOT, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    scripts = {path.relative_to(ROOT).as_posix() for path in (PACKAGE / "migrations").rglob("*.py")}
    assert "airflow_provider_streams/journal/migrations/env.py" in scripts
    assert any("/versions/" in script for script in scripts)
    assert scripts <= names
