"""Wheels of this tree, and scripts that run as a person's shell would."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Wheels:
    """The two distributions of this repository, built."""

    provider: Path
    servers: Path


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    folder = tmp_path_factory.mktemp("wheels")
    uv = Path(sys.executable).with_name("uv")
    for project in (ROOT, ROOT / "servers"):
        subprocess.run([uv, "build", "--quiet", "--wheel", "--out-dir", folder, project], check=True)
    (provider,) = folder.glob("airflow_provider_streams-*.whl")
    (servers,) = folder.glob("airflow_provider_streams_servers-*.whl")
    return Wheels(provider, servers)


def run_script(script: str, folder: Path, more: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run bash in a session of its own. It sees of this process's environment only what a person's shell has.

    Whatever the script leaves running ends with it.
    """
    kept = ("PATH", "HOME", "JAVA_HOME", "LANG", "TMPDIR", "XDG_CACHE_HOME")
    seen = {name: value for name, value in os.environ.items() if name in kept or name.startswith("PIP_")}
    with (folder / "stdout.txt").open("w+") as out, (folder / "stderr.txt").open("w+") as err:
        process = subprocess.Popen(
            ["bash", "-c", script], env=seen | more, cwd=folder, stdout=out, stderr=err, start_new_session=True
        )
        try:
            code = process.wait()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        texts = [(file.flush(), file.seek(0), file.read())[2] for file in (out, err)]
    assert code == 0, "\n".join(text[-6000:] for text in texts)
    return subprocess.CompletedProcess(script, code, *texts)
