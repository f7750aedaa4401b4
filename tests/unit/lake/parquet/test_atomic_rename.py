"""A folder is the old one or the new one, whatever moment a process dies at."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from airflow_provider_streams.lake.parquet import atomic_rename
from tests.seeds import chosen_seed

FILES = 5

# Fills a staging folder with one generation's files, puts it in place, says so, and begins again with the next.
WRITER = textwrap.dedent(
    """
    import os, signal, sys
    from pathlib import Path
    from airflow_provider_streams.lake.parquet import atomic_rename

    root, generation, die_at = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    calls = 0

    def dying(function):
        def call(*arguments, **named):
            global calls
            calls += 1
            if calls == die_at:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **named)
        return call

    if die_at:
        for name in ("_exchange", "_rename_twice", "flush", "flush_folder"):
            setattr(atomic_rename, name, dying(getattr(atomic_rename, name)))
        for name in ("rename", "rmdir", "unlink", "fsync"):
            setattr(os, name, dying(getattr(os, name)))
    if sys.argv[4] == "two renames":
        atomic_rename._exchange = lambda one, other: False
    while True:
        atomic_rename.recover(root / "target", root / "staging", "w-")
        staged = root / "staging" / f"w-{generation}"
        staged.mkdir(parents=True)
        for name in range(5):
            (staged / str(name)).write_text(str(generation))
        atomic_rename.replace_folder(staged, root / "target")
        print(generation, flush=True)
        generation += 1
        if die_at:
            break
    """
)


def content(target: Path) -> list[str]:
    return sorted(path.read_text() for path in target.iterdir())


def made(folder: Path, generation: str) -> Path:
    folder.mkdir(parents=True)
    for name in range(FILES):
        (folder / str(name)).write_text(generation)
    return folder


def writer(root: Path, generation: int, die_at: int = 0, how: str = "exchange") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(root), str(generation), str(die_at), how],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_new_folder_takes_an_absent_ones_place(tmp_path: Path) -> None:
    atomic_rename.replace_folder(made(tmp_path / "new", "2"), tmp_path / "target")
    assert content(tmp_path / "target") == ["2"] * FILES
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("can_exchange", [True, False])
def test_an_old_folder_is_replaced_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, can_exchange: bool
) -> None:
    if not can_exchange:
        monkeypatch.setattr(atomic_rename, "_exchange", lambda *_: False)
    made(tmp_path / "target", "1")
    atomic_rename.replace_folder(made(tmp_path / "new", "2"), tmp_path / "target")
    assert content(tmp_path / "target") == ["2"] * FILES
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


def test_the_target_is_never_absent_while_it_is_exchanged(tmp_path: Path) -> None:
    """A reader that looks again and again finds the target each time."""
    root = tmp_path / "root"
    made(root / "target", "0")
    process = writer(root, 1)
    assert process.stdout is not None
    for line in process.stdout:
        for _ in range(200):
            assert (root / "target").exists()
        if int(line) == 50:
            break
    process.kill()
    process.communicate()


def test_a_target_that_cannot_be_replaced_stays(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("a file")
    with pytest.raises(NotADirectoryError):
        atomic_rename.replace_folder(made(tmp_path / "new", "2"), tmp_path / "target")
    assert (tmp_path / "target").read_text() == "a file"


def test_a_kill_at_a_random_moment_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    seed = chosen_seed()
    print(f"seed {seed}")  # shown when the test fails
    chance = random.Random(seed)  # noqa: S311 - as above
    root, generation = tmp_path / "root", 1
    made(root / "target", "0")
    for _ in range(20):
        process = writer(root, generation)
        assert process.stdout is not None
        process.stdout.readline()  # it runs
        time.sleep(chance.uniform(0, 0.02))  # the moment of the kill is what varies here
        process.kill()
        said = [generation, *map(int, process.stdout.read().split())]
        process.communicate()
        found = content(root / "target")
        assert found in ([str(said[-1])] * FILES, [str(said[-1] + 1)] * FILES)
        generation = said[-1] + 2


@pytest.mark.parametrize("how", ["exchange", "two renames"])
def test_a_kill_at_each_step_leaves_the_old_or_the_new(tmp_path: Path, how: str) -> None:
    ends = set()
    for die_at in range(1, 60):
        root = tmp_path / str(die_at)
        made(root / "target", "old")
        process = writer(root, 7, die_at, how)
        process.communicate()
        killed = process.returncode == -signal.SIGKILL
        atomic_rename.recover(root / "target", root / "staging", "w-")
        found = content(root / "target")
        assert found in (["old"] * FILES, ["7"] * FILES)
        ends.add(found[0])
        if not killed:
            break
    assert not killed, "the steps were not all tried"
    assert ends == {"old", "7"}
