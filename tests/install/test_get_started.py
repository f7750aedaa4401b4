"""The pages "Get started", command by command, from wheels, in an empty environment, by plain pip, with test servers.

The commands are the pages' own. Two of their words are replaced: the names of the distributions, by the wheels.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.install.conftest import ROOT, Wheels, run_script

pytestmark = [pytest.mark.install, pytest.mark.timeout(3600)]

PAGES = ROOT / "docs" / "pages"
SERVERS = re.compile(r"airflow-provider-streams-servers @ https://[^']+")
TOUR = os.environ.get("STREAMS_TOUR", "")
"""Empty: no commands run, as each page takes minutes. `short`: those of one page. `whole`: all of both pages."""
IS_WHOLE = TOUR == "whole"
"""Whether also the last steps run, in which Airflow itself loads some minutes."""
LAST = "7. Let Airflow load every minute"


@dataclass(frozen=True)
class Step:
    """A fenced block of a page."""

    section: str
    language: str
    text: str


def steps(page: str) -> Iterator[Step]:
    """The blocks of a page, with the headings that they stand below."""
    found = re.finditer(
        r"^(?:#{2,3} (?P<heading>[^\n]+)|```(?P<language>\w+)\n(?P<text>.*?)^```)$", page, re.DOTALL | re.MULTILINE
    )
    section = ""
    for one in found:
        section = one["heading"] or section
        if one["language"]:
            yield Step(section, one["language"], one["text"])


def commands(page: str) -> Iterator[Step]:
    """What a person with the test servers pastes."""
    for step in steps((PAGES / f"{page}.md").read_text()):
        if step.section == LAST and not IS_WHOLE:
            return
        if step.language == "bash" and "your own" not in step.section:
            yield step


def script_of(page: str, wheels: Wheels) -> str:
    """The page's commands as one script, which also tells when each section begins."""
    parts = ["set -euo pipefail"]
    for step in commands(page):
        text = step.text.replace("airflow-provider-streams[", f"{wheels.provider}[")
        parts += [f"echo at $SECONDS s: {shlex.quote(step.section)}", SERVERS.sub(str(wheels.servers), text)]
    return "\n".join([*parts, "echo at $SECONDS s: the end", *([] if IS_WHOLE else [UNINSTALL])])


UNINSTALL = """
python query.py > before.txt
pip uninstall --yes --quiet airflow-provider-streams
! python -c 'import airflow_provider_streams' 2> /dev/null
python query.py | diff before.txt -
echo the table is as it was
"""
"""What the page "Leave" promises of tables."""


def home(tmp_path: Path) -> dict[str, str]:
    """A new user's home folder. Downloads are this machine's, and a Python is on the path.

    pip takes the versions of the lock file. How it chooses by itself is for `test_plain_pip`, and takes minutes.
    """
    uv = Path(sys.executable).with_name("uv")
    words = ("export", "--quiet", "--frozen", "--no-hashes", "--no-emit-workspace", "--all-extras", "--no-annotate")
    versions = tmp_path / "versions.txt"
    with versions.open("w") as file:
        subprocess.run([uv, *words], cwd=ROOT, stdout=file, check=True)
    programs = tmp_path / "bin"
    programs.mkdir()
    base = Path(getattr(sys, "_base_executable", sys.executable))
    (programs / "python3").symlink_to(base)
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return {
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": cache,
        "PATH": f"{programs}:/usr/bin:/bin",
        "PIP_CONSTRAINT": str(versions),
    }


TABLES = {"get-started": "orders", "get-started-pravega": "readings"}
SHORT = "get-started"
"""The other page takes as long, and differs by the system alone."""


@pytest.mark.parametrize("page", TABLES)
def test_the_commands_of_the_page_land_a_typed_window(page: str, wheels: Wheels, tmp_path: Path) -> None:
    if not IS_WHOLE and (not TOUR or page != SHORT):
        pytest.skip("make tour runs all of both pages")
    said = run_script(script_of(page, wheels), tmp_path, home(tmp_path))
    print(said.stdout)
    table = TABLES[page]
    (covered,) = re.findall(r"^covered \S+: ([\d,]+) rows, complete, in iceberg_default:", said.stdout, re.MULTILINE)
    assert int(covered.replace(",", "")) > 0
    counted = re.findall(r"│ \d{4}-\d\d-\d\d \d\d:\d\d:00\+00 +│ +(\d+) │", said.stdout)
    assert counted == [covered.replace(",", "")], "DuckDB finds the rows of the receipt"
    assert re.search(r"total \d+ (entries|.*B)", said.stdout), "the plan"
    assert IS_WHOLE or said.stdout.endswith("the table is as it was\n")
    if IS_WHOLE:
        (windows,) = re.findall(r"^covered (\d+) of \d+ ", said.stdout, re.MULTILINE)
        assert int(windows) > 1, "Airflow has read windows by itself"
    else:
        written = (tmp_path / "streams-tour" / "dags" / f"{table}.py").read_text()
        assert without_day(written) == without_day(shown_dag(page)), "init writes what the page shows"


def shown_dag(page: str) -> str:
    (text,) = [step.text for step in steps((PAGES / f"{page}.md").read_text()) if step.language == "python"]
    return text


def without_day(text: str) -> str:
    return re.sub(r"start_date=datetime\(\d+, \d+, \d+,", "start_date=datetime(Y, M, D,", text)


@pytest.mark.parametrize("page", TABLES)
def test_own_servers_need_the_variables_that_the_test_servers_give(page: str) -> None:
    from stream_servers import PravegaServer, PulsarServer

    server = PulsarServer if page == "get-started" else PravegaServer
    (own,) = [
        step.text
        for step in steps((PAGES / f"{page}.md").read_text())
        if "your own" in step.section and step.language == "bash"
    ]
    assert set(re.findall(r"([A-Z_]+)=", own)) == set(server().variables)


def test_every_shown_command_is_bash() -> None:
    for page in TABLES:
        for step in commands(page):
            assert subprocess.run([shutil.which("bash") or "bash", "-n", "-c", step.text], check=False).returncode == 0
