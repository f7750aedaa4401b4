"""The gate is red for what fails twice, for what breaks, and for nothing else. Runs pytest on small suites."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from stream_servers.waiting import wait_until
from tests.gate.__main__ import Runner, command_of, main, run_tier
from tests.gate.lanes import LANES, PIPELINE, Lane, Tier
from tests.gate.record import MOST_FAILURES, record_of
from tests.gate.recorder import RECORD
from tests.seeds import VARIABLES

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
    monkeypatch.setenv("PYTEST_ADDOPTS", "-k nothing_has_this_name")
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\naddopts = -p no:cacheprovider -p no:anyio -p no:asyncio -p no:timeout\n"
    )

    def run(files, marks=""):
        for name, text in files.items():
            Path(name).write_text(text)
        code = run_tier(Tier([Lane(name, [name]) for name in files], marks))
        return code, capfd.readouterr().out

    return run


def test_a_suite_that_passes_is_green(gate):
    code, said = gate({"test_a.py": PASSES, "test_b.py": PASSES})
    assert code == 0
    assert said.splitlines()[-1].startswith("2 tests")
    assert said.splitlines()[-1].endswith("0 red, 0 flaky, 0 skipped")


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
        "    make test ARGS=test_a.py::test_bad",
    ]
    assert "1 red, 1 flaky" in said


def test_a_crash_is_red_although_its_exit_code_says_nothing(gate):
    code, said = gate({"test_a.py": CRASHES, "test_b.py": FAILS_ONCE})
    assert code == 1
    assert "RED: the lane test_a.py\n    pytest's process ended with 0 before the end of test_a.py::test_crash" in said
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


def test_a_lane_without_a_test_of_the_tier_is_red(gate):
    marked = f"import pytest\n\n@pytest.mark.filterwarnings('default')\n{PASSES}"
    code, said = gate({"test_a.py": PASSES, "test_b.py": marked}, "not filterwarnings")
    assert code == 1
    assert "RED: the lane test_b.py\n    no test was chosen" in said


SHARED_FIXTURE_FAILS = """
import pytest

@pytest.fixture(scope="module")
def server():
    yield
    raise RuntimeError("the server lost data")

def test_uses(server): pass
def test_last(): pass
"""


def test_what_fails_after_its_test_is_red_at_once_whichever_test_was_the_last(gate):
    code, said = gate({"test_a.py": SHARED_FIXTURE_FAILS, "test_b.py": FAILS_ONCE})
    assert code == 1
    assert "RED: test_a.py::test_last\n    RuntimeError: the server lost data" in said
    assert "flaky: test_b.py::test_shaky" in said


def test_a_counterexample_is_red_whatever_is_drawn_the_next_time(gate):
    rare = "from hypothesis import given, strategies as st\nfrom pathlib import Path\n\nonce = Path('ran').exists()\n"
    rare += "Path('ran').touch()\n\n@given(st.integers())\ndef test_rare(n):\n    assert once or n < 100\n"
    code, said = gate({"test_a.py": rare})
    assert (code, "flaky:" in said) == (1, False)


# nothing is collected before the end, where pytest does so
UNCLOSED = "import gc, socket\n\ngc.disable()\n\ndef test_leaves():\n    box = [socket.socket()]\n    box.append(box)\n"


def test_what_pytest_finds_at_its_end_is_red_also_beside_a_flaky_test(gate, tmp_path):
    kinds = ("ResourceWarning", "pytest.PytestUnraisableExceptionWarning")
    errors = "".join(f"    error::{kind}\n" for kind in kinds)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\naddopts = -p no:cacheprovider\nfilterwarnings =\n{errors}")
    code, said = gate({"test_a.py": UNCLOSED + FAILS_ONCE})
    assert code == 1
    assert "RED: the lane test_a.py\n    what pytest does at its end failed" in said


@pytest.mark.slow_except("in a test")
@pytest.mark.parametrize(
    "gone",
    ["import os\nos._exit(0)\n", "import os\n\ndef test_gone():\n    os._exit(0)\n"],
    ids=["in its file", "in a test"],
)
def test_a_lane_that_vanishes_is_red_although_others_pass(gate, gone):
    code, said = gate({"test_a.py": gone, "test_b.py": PASSES})
    assert code == 1
    assert "RED: the lane test_a.py\n    pytest's process ended with 0" in said


@pytest.mark.slow_except("skip")
@pytest.mark.parametrize("then", ["skip", "xfail"])
def test_what_is_skipped_alone_did_not_pass(gate, then):
    once = FAILS_ONCE.replace("    assert not first", f"    import pytest\n    first or pytest.{then}()\n    assert 0")
    code, said = gate({"test_a.py": once})
    assert (code, "RED: test_a.py::test_shaky" in said) == (1, True)


def test_a_forked_child_that_leaves_its_test_says_nothing(gate):
    forks = "import os\n\ndef test_forks():\n    if os.fork() == 0:\n        return\n    os.wait()\n    os._exit(0)\n"
    code, _ = gate({"test_a.py": forks})
    assert code == 1


@pytest.mark.parametrize("odd", ["a b", 'a"b', "a'b", "a$b", "`touch there`", "a\\b", "'; touch there; '", "a[b]::c"])
def test_the_command_that_repeats_a_test_names_it_whatever_its_name(tmp_path, odd):
    (tmp_path / "Makefile").write_text("test:\n\t@printf '%s\\n' $(ARGS)\n")
    command = command_of(f"test_a.py::test_bad[{odd}]", "make test")
    said = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=True)  # noqa: S602
    assert said.stdout == f"test_a.py::test_bad[{odd}]\n"
    assert not (tmp_path / "there").exists()


def test_the_command_that_repeats_a_test_draws_as_it_did(monkeypatch):
    monkeypatch.setenv("STREAMS_SEED", "7")
    assert command_of("test_a.py::test_bad", "make test") == "STREAMS_SEED=7 make test ARGS=test_a.py::test_bad"


def test_a_second_run_has_the_options_of_the_first(gate, monkeypatch):
    monkeypatch.setattr("sys.argv", ["gate", "fast", "--runxfail", "test_a.py"])
    Path("test_a.py").write_text("import pytest\n\n@pytest.mark.xfail\ndef test_bad():\n    assert 0\n")
    monkeypatch.setattr("tests.gate.__main__.TIERS", {"fast": Tier(())})
    del gate  # its folder alone
    assert main() == 1


def test_an_interrupted_run_starts_no_other_lane(gate, tmp_path):
    del gate  # its folder alone
    waits = (
        "import time\nfrom pathlib import Path\n\ndef test_waits():\n    Path('waits').touch()\n    time.sleep(600)\n"
    )
    (tmp_path / "test_a.py").write_text(waits)
    (tmp_path / "test_b.py").write_text("from pathlib import Path\n\ndef test_next():\n    Path('next').touch()\n")
    code = "from tests.gate.__main__ import Lane, Tier, run_tier\n"
    code += "run_tier(Tier([Lane('a', ['test_a.py']), Lane('b', ['test_b.py'])], at_once=1))"
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE)
    wait_until((tmp_path / "waits").exists, "the first lane is at work")
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=600)
    assert b"KeyboardInterrupt" in error
    assert process.returncode != 0
    assert not (tmp_path / "next").exists()


def test_a_runner_that_has_ended_starts_no_lane(tmp_path):
    runner = Runner(tmp_path, "")
    runner.end()
    with pytest.raises(InterruptedError, match=r"test_a\.py"):
        runner.run(Lane("test_a.py", ["test_a.py"]))
    assert runner.processes == []
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_is_told_to_end_ends_its_lane(gate, tmp_path):
    del gate  # its folder alone
    waits = "import os, time\nfrom pathlib import Path\n\ndef test_waits():\n"
    waits += "    Path('pid.new').write_text(str(os.getpid()))\n"
    waits += "    os.rename('pid.new', 'pid')\n    time.sleep(600)\n"
    (tmp_path / "test_a.py").write_text(waits)
    process = subprocess.Popen([sys.executable, "-m", "tests.gate", "fast", "test_a.py"], stderr=subprocess.DEVNULL)
    wait_until((tmp_path / "pid").exists, "the lane is at work")
    process.terminate()
    assert process.wait(600) != 0
    assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))


def test_a_test_cannot_write_its_own_record(gate):
    tells = f"import os\n\ndef test_tells():\n    assert {RECORD!r} in os.environ\n"
    code, said = gate({"test_a.py": tells})
    assert code == 1
    assert "RED: test_a.py::test_tells" in said


def test_an_error_that_cannot_be_printed_is_shown_without_what_harms_a_terminal(gate):
    code, said = gate({"test_a.py": "def test_bad():\n    raise ValueError('a\\x1b[2Jb')\n"})
    assert code == 1
    assert "ValueError: a?[2Jb" in said[said.rindex("RED: ") :]


def test_a_record_that_was_cut_off_leaves_its_last_test_unfinished():
    record = record_of("units", 0, ['{"collected": "a"}\n', '{"ended": "a"'])
    assert record.cut_short == "pytest's process ended with 0 before the end of a"


@pytest.mark.parametrize("tier", LANES)
def test_each_file_with_tests_is_in_one_lane(tier):
    files = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests").rglob("test_*.py")}
    wanted = {file for file in files if not file.startswith(PIPELINE)}
    found = [file for lane in LANES[tier] for file in wanted if _chosen(file, lane)]
    missing = wanted - set(found)
    assert len(found) == len(set(found))
    assert not any(file.startswith(("tests/unit/", "tests/fuzz/")) for file in missing)
    assert not missing or tier == "fast"


def _chosen(file: str, lane: Lane) -> bool:
    """As pytest chooses by paths: a file that is named is taken although its folder is ignored for others."""
    ignored = [one.removeprefix("--ignore=") for one in lane.arguments if one.startswith("--ignore=")]
    named = [one for one in lane.arguments if not one.startswith("--")] or ["tests"]
    return any(_below(file, one) for one in named) and not any(_below(file, one) for one in ignored)


def _below(file: str, path: str) -> bool:
    return file == path or file.startswith(f"{path}/")
