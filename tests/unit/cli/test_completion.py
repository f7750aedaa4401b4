"""What a shell gets that completes `airflow-streams`, by argcomplete's protocol."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from airflow_provider_streams.cli import main


def test_a_shell_completes_options(tmp_path):
    line, answer = "airflow-streams tail --w", tmp_path / "answer"
    environment = {
        **os.environ,
        "AIRFLOW_HOME": str(tmp_path),
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    subprocess.run([sys.executable, "-c", f"from {main.__name__} import main; main()"], env=environment, check=True)
    assert answer.read_text().split() == ["--where"]


def test_global_completion_finds_the_program():
    assert "PYTHON_ARGCOMPLETE_OK" in Path(main.__file__).read_text()[:1024]
