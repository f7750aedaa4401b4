"""URIs of Airflow's assets, which have at most 1,500 letters. Pure."""

from __future__ import annotations

import hashlib
import re
from typing import Final

MOST_LETTERS: Final = 1500
"""Of an asset's name and URI, in Airflow and its database."""

_DIGITS: Final = 32
_HEAD: Final = MOST_LETTERS - _DIGITS - 1
_HALF_ESCAPE: Final = re.compile(r"%[0-9A-Fa-f]?\Z")
_SHORT: Final = re.compile(rf".*~[0-9a-f]{{{_DIGITS}}}", re.DOTALL)


def short_uri(uri: str) -> str:
    """The same URI; a longer one than Airflow takes as its beginning, `~` and 32 hex digits of its SHA-256.

    The rule never changes, because DAGs find each other by the result.
    """
    if len(uri) <= MOST_LETTERS:
        return uri
    digest = hashlib.sha256(uri.encode(errors="surrogatepass")).hexdigest()[:_DIGITS]
    return f"{_head_of(uri)}~{digest}"


def may_shorten(short: str, start: str) -> bool:
    """Whether a URI may be the short form of one that starts in this way."""
    return bool(_SHORT.fullmatch(short)) and short.startswith(_head_of(start))


def _head_of(uri: str) -> str:
    return _HALF_ESCAPE.sub("", uri[:_HEAD])
