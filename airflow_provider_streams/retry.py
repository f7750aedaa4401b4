"""Errors of this package as Airflow's retries understand them.

A terminal error (`retryable = False` on its class) reaches Airflow as a class that is both the typed error and
`AirflowFailException`: no retry is spent on it. A passing one reaches Airflow as it is, and is retried.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_provider_streams.airflow_features import Feature, has
from airflow_provider_streams.errors import StreamsError

if TYPE_CHECKING:
    from airflow.sdk.definitions.retry_policy import ExceptionRetryPolicy


def terminal(error: StreamsError) -> StreamsError:
    """The same error, with its facts, as one that Airflow never retries."""
    return _rebuild(type(error), str(error), vars(error))


def error_event(error: StreamsError) -> dict[str, Any]:
    """A trigger's event that carries an error to the task; the reverse of `error_from_event`."""
    return {"status": "error", "error_type": type(error).__name__, "message": str(error.name_doctor())}


def error_from_event(event: dict[str, Any]) -> StreamsError:
    """The typed, terminal error that a trigger reported."""
    kinds = {kind.__name__: kind for kind in _leaves_first(StreamsError)}
    return _rebuild(kinds.get(event["error_type"], StreamsError), event["message"], {})


@contextmanager
def terminal_errors() -> Iterator[None]:
    """Turns every error of this package that cannot pass by itself into one that stops Airflow's retries."""
    try:
        yield
    except AirflowFailException:
        raise
    except StreamsError as error:
        if error.name_doctor().retryable:
            raise
        raise terminal(error) from error


def stream_retry_policy(delay: timedelta | None = None) -> ExceptionRetryPolicy | None:
    """A `retry_policy=` for any task that uses this package, built from `retryable` on its errors.

    None before Airflow 3.3, which has no retry policies and ignores one in `default_args`. Tasks of this package stop
    their retries there just the same.

    Args:
        delay: between retries of passing errors; None: the task's own `retry_delay`.
    """
    if not has(Feature.RETRY_POLICIES):
        return None
    from airflow.sdk.definitions.retry_policy import ExceptionRetryPolicy, RetryAction, RetryRule  # noqa: PLC0415

    rules = [
        RetryRule(
            exception=f"{kind.__module__}.{kind.__qualname__}",
            action=RetryAction.RETRY if kind.retryable else RetryAction.FAIL,
            retry_delay=delay if kind.retryable else None,
            reason=f"{kind.__name__} {'passes by itself' if kind.retryable else 'cannot pass by itself'}",
        )
        for kind in _leaves_first(StreamsError)
    ]
    return ExceptionRetryPolicy(rules)


def _leaves_first(root: type[StreamsError]) -> Iterator[type[StreamsError]]:
    """Every class of the tree that `errors` defines, children before parents: the first matching rule wins."""
    for child in root.__subclasses__():
        if child.__module__ == StreamsError.__module__:
            yield from _leaves_first(child)
    yield root


_TERMINAL: dict[type[StreamsError], type[StreamsError]] = {}


def _terminal_class(kind: type[StreamsError]) -> type[StreamsError]:
    if issubclass(kind, AirflowFailException):
        return kind
    if kind not in _TERMINAL:
        _TERMINAL[kind] = _make_terminal(kind)
    return _TERMINAL[kind]


def _make_terminal(kind: type[StreamsError]) -> type[StreamsError]:
    return type(kind.__name__, (kind, AirflowFailException), {"__module__": __name__, "__reduce__": _reduce})


def _reduce(error: StreamsError) -> tuple[Any, ...]:
    kind = type(error).__mro__[1]
    return (_rebuild, (kind, str(error), dict(vars(error))))


def _rebuild(kind: type[StreamsError], message: str, facts: dict[str, Any]) -> StreamsError:
    made = _terminal_class(kind)
    error = made.__new__(made, message)
    Exception.__init__(error, message)
    vars(error).update(facts)
    return error
