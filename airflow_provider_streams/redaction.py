"""The one place that keeps secrets out of texts: what this process has met, and every error's words without it.

A token or password is registered where it is read. From then on no `StreamsError` shows it, whether its text
comes from our own code, a server that echoes it, or a library. Airflow's side listens, and masks it in its logs.
"""

from __future__ import annotations

import base64
import html
import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from urllib.parse import quote, quote_plus

SHORTEST = 4
"""Shorter ones cannot be told from words, and are left."""
_PIECE = 16
"""So many characters of a secret tell of it."""
_GRAM = 8
"""Half of that: what is looked for first."""
_URL_SAFE = str.maketrans("+/", "-_")
_MOST = 1000
"""So many are remembered; tokens that were renewed that often are worth nothing any more."""

_known: dict[str, tuple[str, ...]] = {}
"""Each secret with the ways to write it; the oldest first."""
_listeners: list[Callable[[str], None]] = []
_lock = threading.Lock()


def on_secret(listener: Callable[[str], None]) -> None:
    """Tell this function of every secret that `register_secret` meets for the first time."""
    if listener not in _listeners:
        _listeners.append(listener)


def register_secret(secret: str) -> str:
    """Show it in no error from now on, and tell who listens; returns it."""
    if remember(secret):
        for listener in tuple(_listeners):
            listener(secret)
    return secret


def remember(secret: str) -> bool:
    """As `register_secret`, without telling: for tokens that live for minutes. Whether it was new."""
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


def redact(text: str, others: Iterable[str] = ()) -> str:
    """The text with every secret replaced: the known ones and the others.

    Also as they are written in an address, in JSON, HTML or base64, or by `repr`; and of long ones every piece of
    `_PIECE` characters or more, since servers cut what they echo.
    """
    with _lock:
        written = list(_known.values())
    written += [_written(one) for one in others if len(one) >= SHORTEST]
    if not written:
        return text
    grams = {text[at : at + _GRAM] for at in range(len(text) - _GRAM + 1)}
    spans = [span for forms in written for form in forms for span in _found(form, text, grams)]
    return _without(text, spans)


def safe_cause(error: BaseException | None) -> BaseException | None:
    """An error of a library, as the cause of one of ours: a traceback prints its text, its notes and its own causes.

    It stays the same object, unless one of its texts shows a secret. Then an error whose class has the same name takes
    its place, with the text that `redact` gives.
    """
    if error is None:
        return None
    chain = list(_chain(error))
    shown = [any(redact(text) != text for text in _texts(one)) for one in chain]
    if not any(shown):
        return error
    safe: BaseException | None = None
    for one, shows_secret in reversed(list(zip(chain, shown, strict=True))):
        this = _without_secrets(one) if shows_secret else one
        if one.__cause__ is not None:
            this.__cause__ = safe
        elif safe is not None:
            this.__context__ = safe
        safe = this
    return safe


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what a traceback prints before it, the latest first."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)


def _texts(error: BaseException) -> Iterator[str]:
    yield str(error)
    yield from getattr(error, "__notes__", ())
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _texts(one)


def _without_secrets(error: BaseException) -> Exception:
    kind = type(error)
    names = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
    safe: Exception = type(kind.__name__, (Exception,), names)(redact(str(error)))
    for note in getattr(error, "__notes__", ()):
        safe.add_note(redact(note))
    return safe.with_traceback(error.__traceback__)


def _found(form: str, text: str, grams: set[str]) -> Iterator[tuple[int, int]]:
    """Where the text holds a form, or a piece of a long one."""
    if len(form) < _PIECE:
        yield from ((at, at + len(form)) for at in _places(form, text))
        return
    # a piece of 16 characters holds one of these as a whole, wherever it begins
    for own in range(0, len(form) - _GRAM + 1, _GRAM):
        gram = form[own : own + _GRAM]
        if gram in grams:
            yield from (span for at in _places(gram, text) if (span := _around(form, own, text, at)))


def _around(form: str, own: int, text: str, at: int) -> tuple[int, int] | None:
    """The whole piece of a form around one place where both are alike; None: it is too short to tell."""
    before = _alike(reversed(form[:own]), reversed(text[max(0, at - own) : at]))
    after = _alike(form[own:], text[at : at + len(form) - own])
    return (at - before, at + after) if before + after >= _PIECE else None


def _alike(one: Iterable[str], other: Iterable[str]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def _places(part: str, text: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def _without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text with each span replaced; those that touch are one."""
    parts: list[str] = []
    done = 0
    for start, end in sorted(spans):
        if start > done or not parts:
            parts += [text[done:start], "***"]
        done = max(done, end)
    return "".join(parts) + text[done:]


def _written(secret: str) -> tuple[str, ...]:
    address = [kind(secret, safe=safe, errors="surrogatepass") for kind in (quote, quote_plus) for safe in ("", "/")]
    small = (re.sub("%..", lambda found: found[0].lower(), one) for one in address)
    quoted = (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], repr(secret)[1:-1])
    return tuple(dict.fromkeys((secret, html.escape(secret), *quoted, *address, *small, *_in_base64(secret))))


def _in_base64(secret: str) -> Iterator[str]:
    """What base64 makes of it wherever it stands in what is encoded: without the ends, which the neighbours share."""
    data = secret.encode(errors="surrogatepass")
    for shift in range(3):
        encoded = base64.b64encode(bytes(shift) + data).decode()
        inner = encoded[-(-shift * 8 // 6) : (shift + len(data)) * 8 // 6]
        if len(inner) >= _GRAM:  # shorter ones cannot be told from words
            yield from (inner, inner.translate(_URL_SAFE))
