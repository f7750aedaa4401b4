"""Files and folders of this machine that Spark's settings name: Spark itself goes on without a jar that is missing."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

_LISTS: Final = ("spark.jars", "spark.files", "spark.submit.pyFiles", "spark.archives")
_OF_JAVA: Final = "/tmp"  # noqa: S108 - java.io.tmpdir, whatever TMPDIR says
_PATTERN: Final = re.compile(r"[*?\[{]")


def missing_files(value_of: Callable[[str], str | None]) -> Iterator[tuple[str, str]]:
    """The settings, each with a file that it names and that is not on this machine.

    Args:
        value_of: the value of a setting; None: it is not set.
    """
    for name in _LISTS:
        for written in (value_of(name) or "").split(","):
            file = _local(written.strip())
            if file is not None and not file.exists():
                yield name, written.strip()


def spill_folders(value_of: Callable[[str], str | None], environment: Mapping[str, str] | None = None) -> list[Path]:
    """Where a Spark that starts on this machine keeps what its memory cannot hold.

    Args:
        value_of: the value of a setting; None: it is not set.
        environment: by default the process's. `SPARK_LOCAL_DIRS` counts more than the setting.
    """
    given = (os.environ if environment is None else environment).get("SPARK_LOCAL_DIRS")
    named = given or value_of("spark.local.dir") or _OF_JAVA
    return [Path(one.strip()) for one in named.split(",") if one.strip()]


def _local(written: str) -> Path | None:
    """The path that a setting names on this machine; None: it names none, or several by a pattern."""
    url = urlsplit(written)
    path = unquote(url.path) if url.scheme == "file" else url.path  # what follows # is the name on executors
    return Path(path) if url.scheme in ("", "file") and path and not _PATTERN.search(path) else None
