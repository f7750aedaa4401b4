"""What became of the windows of a job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from airflow_provider_streams.errors import (
    AccessError,
    AuthenticationFailed,
    CertificateNotTrusted,
    DataLoss,
    InvalidRequest,
    PreflightFailed,
    ReadStalled,
    SinkError,
    SourceNotFound,
    StreamsError,
    SystemUnavailable,
    TaskCancelled,
    WindowsOverlap,
    error_class,
)
from airflow_provider_streams.model.sinks.landing import Landed
from airflow_provider_streams.model.sinks.untouched_table import mark_untouched
from airflow_provider_streams.redaction import redact
from airflow_provider_streams.spark.error_transport import rebuild, typed


@dataclass(frozen=True, slots=True)
class WindowFailure:
    """Why one window of a job was not covered; the others go on without it."""

    error_type: str
    message: str
    lost: bool = False
    """The stream no longer holds what the window needs."""
    retryable: bool = False
    untouched: bool = False
    """The job had not begun to change the table for this window."""
    foreseeable: bool = False
    """Doctor can find the cause."""
    error: BaseException | None = field(default=None, compare=False, repr=False)
    """What was raised, if it is known: in the same process, for a job of one window."""

    @classmethod
    def of(cls, error: BaseException, *, untouched: bool = False) -> Self:
        """From what was raised. The text of a foreign error may quote anything: only its class is kept."""
        name = type(error).__name__
        if isinstance(error, StreamsError):
            is_loss = isinstance(error, DataLoss)
            return cls(name, str(error), is_loss, error.retryable, untouched, error.foreseeable, error)
        return cls(name, "see the log of the Spark job", untouched=untouched, error=error)

    @property
    def exception(self) -> BaseException:
        """What was raised, or an error rebuilt from its type and message."""
        error = self._error
        if self.untouched:
            mark_untouched(error)
        return error

    @property
    def _error(self) -> BaseException:
        if self.error is not None:
            return self.error
        if error_class(self.error_type).__name__ == self.error_type:
            return rebuild(self.error_type, self.message, foreseeable=self.foreseeable)
        return RuntimeError(f"{self.error_type}: {self.message}")

    def without(self, secrets: Iterable[str]) -> Self:
        """The same without these words."""
        hidden = list(secrets)
        error = None if self.error is None else typed(self.error, hidden)
        return replace(self, message=redact(self.message, hidden), error=error)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "error"}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The reverse of `to_json`."""
        return cls(**data)


WindowResult = Landed | WindowFailure
"""What became of one window of a job."""


def landed_of(results: Sequence[WindowResult]) -> Landed:
    """What landed by a job of one window.

    Raises:
        BaseException: as its failure says.
    """
    (result,) = results
    if isinstance(result, WindowFailure):
        raise result.exception
    return result


def is_fatal_for_all(error: BaseException, *, several_tables: bool = False) -> bool:
    """Whether an error concerns all windows: reading the others without the failed one would meet it again.

    If each source has a table of its own, most errors concern one source or one table. Several such errors in a row
    show that nothing answers, see `model.circuit_breaker`.
    """
    if several_tables:
        return isinstance(error, PreflightFailed | TaskCancelled | AuthenticationFailed | CertificateNotTrusted)
    if isinstance(error, ReadStalled):
        return False
    if isinstance(error, WindowsOverlap):
        return False
    return isinstance(
        error,
        AccessError | SourceNotFound | SystemUnavailable | PreflightFailed | InvalidRequest | SinkError | TaskCancelled,
    )


def results_to_json(results: Sequence[WindowResult]) -> list[dict[str, Any]]:
    """For the result file of a job, in its order."""
    return [
        {"landed": result.to_json()} if isinstance(result, Landed) else {"failure": result.to_json()}
        for result in results
    ]


def results_from_json(data: Sequence[dict[str, Any]]) -> list[WindowResult]:
    """The reverse of `results_to_json`."""
    return [
        Landed.from_json(one["landed"]) if "landed" in one else WindowFailure.from_json(one["failure"]) for one in data
    ]
