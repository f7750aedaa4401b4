"""The root of all errors, and how they quote the words of others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Self

from airflow_provider_streams.redaction import redact, safe_cause

DOCTOR_HINT = "`airflow streams doctor` checks this before a read."


class StreamsError(Exception):
    """The root. Subclasses set `retryable`. The message holds no secret that this process knows."""

    retryable: bool = False
    foreseeable: bool = False
    """Whether doctor can find the cause before a reader does: a class's rule, or one error's (`mark_foreseeable`)."""

    def __init__(self, *words: object) -> None:
        super().__init__(*(redact(str(one)) for one in words))

    @property
    def __cause__(self) -> BaseException | None:
        """See `BaseException`. It shows no secret either: a traceback prints its text before ours."""
        return _safe(self, _CAUSE)

    @__cause__.setter
    def __cause__(self, cause: BaseException | None) -> None:
        _CAUSE.__set__(self, cause)

    @property
    def __context__(self) -> BaseException | None:
        """As `__cause__`."""
        return _safe(self, _CONTEXT)

    @__context__.setter
    def __context__(self, context: BaseException | None) -> None:
        _CONTEXT.__set__(self, context)

    def mark_foreseeable(self) -> Self:
        """Return this error, marked: doctor makes the check that raised it, though not those of all of its class."""
        self.foreseeable = True
        return self

    def name_doctor(self) -> Self:
        """Return this error. If doctor could have foreseen it, end its message with a hint to run doctor.

        Called where an error leaves this package: inside, messages quote each other.
        """
        text = str(self)
        if self.foreseeable and DOCTOR_HINT not in text:
            self.args = (f"{as_sentence(text)} {DOCTOR_HINT}",)
        return self


_CAUSE, _CONTEXT = (vars(BaseException)[name] for name in ("__cause__", "__context__"))
"""Where the interpreter keeps them."""


def _safe(error: StreamsError, kept: Any) -> BaseException | None:
    found: BaseException | None = kept.__get__(error)
    safe = safe_cause(found)
    if safe is not found:
        suppressed = error.__suppress_context__
        kept.__set__(error, safe)  # it stays one object from now on
        error.__suppress_context__ = suppressed
    return safe


@contextmanager
def foreseen() -> Iterator[None]:
    """Mark errors that are raised inside as foreseeable: doctor makes the same check."""
    try:
        yield
    except StreamsError as error:
        error.mark_foreseeable()
        raise


def as_clause(text: object) -> str:
    """Words of others as a part of our sentence: without a full stop at their end."""
    return _FULL_STOP.sub("", str(text).strip())


_FULL_STOP = re.compile(r"(?<!\.)\.$|\.{3,}$")
"""Two dots at the end stay: this package writes them for omitted text."""


def as_sentence(text: object) -> str:
    """Words of others as the end of our sentence: with one mark at their end."""
    clause = as_clause(text)
    return clause if clause.endswith(("?", "!")) else f"{clause}."


def listed(texts: Iterable[object]) -> str:
    """Words of others as one sentence."""
    return as_sentence("; ".join(map(as_clause, texts)))


def because(detail: str) -> str:
    """A cause in parentheses, if it is known."""
    return f" ({as_clause(detail)})" if detail else ""
