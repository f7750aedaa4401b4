"""A directory per key, built once by the first process that needs it, and shared by every process of the user."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_root() -> Path:
    """`$XDG_CACHE_HOME/airflow-provider-streams`, by default below `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "airflow-provider-streams"


def cached(key: str, build: Callable[[Path], None]) -> Path:
    """The directory of `key`; when there is none, `build` fills an empty one that then takes its name.

    A build that fails or is killed leaves nothing under the key. Others wait for a build under way.
    """
    root = cache_root()
    root.mkdir(parents=True, exist_ok=True)
    wanted = root / key
    if wanted.is_dir():
        return wanted
    with _locked(root / f"{key}.lock"):
        if not wanted.is_dir():
            started = Path(tempfile.mkdtemp(prefix=f"{key}.", dir=root))
            try:
                build(started)
                started.chmod(0o755)
                started.rename(wanted)
            finally:
                shutil.rmtree(started, ignore_errors=True)
    return wanted


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
