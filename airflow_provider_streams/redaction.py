"""The one place that keeps secrets out of texts: what this process has met, and every error's words without it.

A token or password is concealed where it is read. From then on no `StreamsError` shows it, whoever wrote the words: our
own code, a server that echoes it, or a library. Airflow's side listens, and masks it in its logs as well.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from urllib.parse import quote

SHORTEST = 4
"""Shorter ones cannot be told from words, and are left."""
_MOST = 1000
"""So many are remembered; tokens that were renewed that often are worth nothing any more."""

_known: dict[str, tuple[str, ...]] = {}
"""Each secret with the ways to write it; the oldest first."""
_listeners: list[Callable[[str], None]] = []
_lock = threading.Lock()


def on_secret(listener: Callable[[str], None]) -> None:
    """Tell this function of every secret that `conceal` meets for the first time."""
    if listener not in _listeners:
        _listeners.append(listener)


def conceal(secret: str) -> str:
    """Show it in no error from now on, and tell who listens; returns it."""
    if remember(secret):
        for listener in tuple(_listeners):
            listener(secret)
    return secret


def remember(secret: str) -> bool:
    """As `conceal`, without telling: for tokens that live for minutes. Whether it was new."""
    if len(secret) < SHORTEST:
        return False
    with _lock:
        written = _known.pop(secret, None)
        _known[secret] = written or _written(secret)
        if len(_known) > _MOST:
            del _known[next(iter(_known))]
    return written is None


def forget() -> None:
    """Know no secret any more."""
    with _lock:
        _known.clear()


def redact(text: str) -> str:
    """The text with every known secret replaced, also as it is written in an address, in JSON or by `repr`."""
    if not _known:
        return text
    with _lock:
        found = {form for written in _known.values() for form in written if form in text}
    for form in sorted(found, key=len, reverse=True):  # one may be a part of another
        text = text.replace(form, "***")
    return text


def _written(secret: str) -> tuple[str, ...]:
    forms = secret, quote(secret, safe=""), json.dumps(secret)[1:-1], repr(secret)[1:-1]
    return tuple(dict.fromkeys(forms))
