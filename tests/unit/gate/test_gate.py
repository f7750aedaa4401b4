"""The gate is red for what fails twice, for what breaks, and for nothing else. Runs pytest on small suites."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stream_servers.waiting import wait_until
from tests.gate.__main__ import run_tier
from tests.gate.lanes import LANES, PIPELINE, Lane, Tier
from tests.gate.record import MOST_FAILURES, record_of

ROOT = Path(__file__).parents[3]

PASSES = "def test_good():\n    assert True\n"
FAILS = "def test_bad():\n    assert 1 == 2\n"
FAILS_ONCE = """
from pathlib import Path

def test_shaky():
    ran = Path("ran")
    first = not ran.exists()
    ran.touch()
    assert not first
"""
CRASHES = "import os\n\ndef test_crash():\n    os._exit(0)\n\ndef test_after():\n    pass\n"
MANY = f"import pytest\n\n@pytest.mark.parametrize('n', range({MOST_FAILURES + 5}))\ndef test_many(n):\n    assert 0\n"


@pytest.fixture
def gate(tmp_path, monkeypatch, capfd):
    """`gate({"test_a.py": text})` runs these files in a lane each; exit code and what was printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n")

    def run(files, marks=""):
        for name, text in files.items():
            Path(name).write_text(text)
        code = run_tier(Tier([[Lane(name, [name])] for name in files], marks))
        return code, capfd.readouterr().out

    return run


def test_a_suite_that_passes_is_green(gate):
    code, said = gate({"test_a.py": PASSES, "test_b.py": PASSES})
    assert code == 0
    assert said.splitlines()[-1].startswith("2 tests")
    assert said.splitlines()[-1].endswith("0 red, 0 flaky")


def test_what_passes_alone_is_flaky_and_not_red(gate):
    code, said = gate({"test_a.py": FAILS_ONCE, "test_b.py": PASSES})
    assert code == 0
    assert said.splitlines()[-2:] == ["flaky: test_a.py::test_shaky", "    assert not True"]


def test_what_fails_twice_is_red_with_its_error_and_the_command_that_repeats_it(gate):
    code, said = gate({"test_a.py": FAILS, "test_b.py": FAILS_ONCE})
    assert code == 1
    assert said.splitlines()[-3:] == [
        "RED: test_a.py::test_bad",
        "    assert 1 == 2",
        '    make test ARGS="test_a.py::test_bad"',
    ]
    assert "1 red, 1 flaky" in said


def test_a_crash_is_red_although_its_exit_code_says_nothing(gate):
    code, said = gate({"test_a.py": CRASHES, "test_b.py": FAILS_ONCE})
    assert code == 1
    assert "RED: the lane test_a.py\n    2 of 2 tests did not run" in said
    assert "Again, alone" not in said


def test_a_file_that_cannot_be_collected_is_red(gate):
    code, said = gate({"test_a.py": "import nothing_of_that_name\n"})
    assert code == 1
    assert "ModuleNotFoundError: No module named 'nothing_of_that_name'" in said.split("RED:", 1)[1]


def test_many_failures_are_red_at_once(gate):
    code, said = gate({"test_a.py": MANY})
    assert code == 1
    assert f"{MOST_FAILURES + 1} tests failed: none was repeated." in said
    assert "Again, alone" not in said


def test_a_lane_without_a_test_of_the_tier_is_no_failure(gate):
    marked = f"import pytest\n\n@pytest.mark.filterwarnings('default')\n{PASSES}"
    code, said = gate({"test_a.py": PASSES, "test_b.py": marked}, "not filterwarnings")
    assert (code, "1 tests" in said) == (0, True)


def test_a_run_without_any_test_is_red(gate):
    code, said = gate({"test_a.py": PASSES, "test_b.py": PASSES}, "nothing_has_this_mark")
    assert code == 1
    assert "RED: the whole run\n    no test was chosen" in said


def test_an_interrupted_run_starts_no_other_lane(gate, tmp_path):
    del gate  # its folder alone
    waits = (
        "import time\nfrom pathlib import Path\n\ndef test_waits():\n    Path('waits').touch()\n    time.sleep(600)\n"
    )
    (tmp_path / "test_a.py").write_text(waits)
    (tmp_path / "test_b.py").write_text("from pathlib import Path\n\ndef test_next():\n    Path('next').touch()\n")
    (tmp_path / "test_c.py").write_text(PASSES)
    code = "from tests.gate.__main__ import Lane, Tier, run_tier\n"
    code += "rows = [[Lane('a', ['test_a.py']), Lane('b', ['test_b.py'])], [Lane('c', ['test_c.py'])]]\n"
    code += "run_tier(Tier(rows, ''))"
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE)
    wait_until((tmp_path / "waits").exists, "the first lane is at work")
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=600)
    assert b"KeyboardInterrupt" in error
    assert process.returncode != 0
    assert not (tmp_path / "next").exists()


def test_a_record_that_was_cut_off_leaves_its_last_test_unfinished():
    record = record_of("units", 0, ['{"collected": "a"}\n', '{"ended": "a"'])
    assert record.cut_short == "1 of 1 tests did not run"


@pytest.mark.parametrize("tier", LANES)
def test_each_file_with_tests_is_in_one_lane(tier):
    files = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")}
    wanted = {file for file in files if not file.startswith(PIPELINE)}
    found = [file for row in LANES[tier] for lane in row for file in wanted if _chosen(file, lane)]
    missing = wanted - set(found)
    assert len(found) == len(set(found))
    # Those of the fast tier leave out what needs a server in any case.
    assert all(file.startswith(("tests/airflow/stack", "tests/spark", "tests/install")) for file in missing)
    assert not missing or tier == "fast"


def _chosen(file: str, lane: Lane) -> bool:
    """As pytest chooses by paths: a file that is named is taken although its folder is ignored for others."""
    ignored = [one.removeprefix("--ignore=") for one in lane.arguments if one.startswith("--ignore=")]
    named = [one for one in lane.arguments if not one.startswith("--")] or ["tests"]
    return any(_below(file, one) for one in named) and not any(_below(file, one) for one in ignored)


def _below(file: str, path: str) -> bool:
    return file == path or file.startswith(f"{path}/")
