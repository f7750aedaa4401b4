"""Files of this machine that Spark's settings name: Spark itself goes on without a jar that is missing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

_LISTS: Final = ("spark.jars", "spark.files", "spark.submit.pyFiles", "spark.archives")
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


def _local(written: str) -> Path | None:
    """The path that a setting names on this machine; None: it names none, or several by a pattern."""
    url = urlsplit(written)
    path = unquote(url.path) if url.scheme == "file" else url.path  # what follows # is the name on executors
    return Path(path) if url.scheme in ("", "file") and path and not _PATTERN.search(path) else None
