"""Upper bounds of long texts in Iceberg's manifests.

pyiceberg 0.12 makes them of the first letters and the one that follows the last of these. What follows U+D7FF is half
of a letter, of which it cannot make bytes: a commit with such a file fails, however often it is tried
(apache/iceberg-python, pull request 3880).
"""

from __future__ import annotations

import sys

from pyiceberg.io import pyarrow as data_files

_HALVES = range(0xD800, 0xE000)
"""Of UTF-16's pairs: no letters."""


def upper_bound(text: str, length: int | None) -> str | None:
    """A text of at most so many letters that no text with this one's beginning exceeds; None: there is none."""
    kept = text[:length]
    if kept == text:
        return text
    while kept:
        following = ord(kept[-1]) + 1
        kept = kept[:-1]
        if following in _HALVES:
            following = _HALVES.stop
        if following <= sys.maxunicode:
            return kept + chr(following)
    return None


def make_right() -> None:
    """Have pyiceberg take these bounds in this process."""
    vars(data_files)["truncate_upper_bound_text_string"] = upper_bound
