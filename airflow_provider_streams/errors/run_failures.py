"""Errors of runs: some windows are not covered, or Spark or a user's function failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from airflow_provider_streams.errors.base import StreamsError, as_clause, as_sentence, listed
from airflow_provider_streams.errors.plurals import counted


def causes_text(failures: Mapping[str, str], most: int = 10, named: int = 90) -> str:
    """Many failures in one sentence: the first with their causes, further ones by their names."""
    shown = [f"{one}: {as_clause(cause)}" for one, cause in list(failures.items())[:most]]
    others = list(failures)[most:]
    if others:
        names = ", ".join(others[:named])
        more = f"{len(others) - named} more" if len(others) > named else ""
        shown.append(f"and {' and '.join(filter(None, (names, more)))}: see the log")
    return "; ".join(shown)


def _loss_advice(failures: Mapping[str, str]) -> str:
    """Only where a failure is a loss that may be accepted."""
    may_accept = any("on_loss='record'" in text for text in failures.values())
    return "; accept what is lost with on_loss='record'" if may_accept else ""


class BackfillIncomplete(StreamsError):
    """Some windows of a backfill are not covered; the others are."""

    retryable = True

    def __init__(self, source: object, covered: int, failures: Mapping[str, str], *, retryable: bool) -> None:
        self.source, self.covered, self.failures, self.retryable = source, covered, dict(failures), retryable
        super().__init__(
            f"{source}: windows covered: {covered}, not covered: {len(failures)}. "
            f"{as_sentence(causes_text(failures, 5, 0))} Run it again to try only those{_loss_advice(failures)}."
        )


class FanOutIncomplete(StreamsError):
    """Some topics or streams of a source are not landed; the others are, each in its own table.

    A dry run lands none: some could not be landed, and `planned` others could.
    """

    retryable = True

    def __init__(
        self,
        source: object,
        span: object,
        landed: int,
        failures: Mapping[str, str],
        *,
        retryable: bool,
        planned: int | None = None,
    ) -> None:
        self.source, self.span, self.landed, self.failures = source, span, landed, dict(failures)
        self.retryable, self.planned = retryable, planned
        if planned is None:
            became, then = f"{landed:,} landed, {len(failures):,} did not", "Run the task again to try only those"
        else:
            became, then = f"{planned:,} could be landed, {len(failures):,} could not", "A dry run lands nothing"
        super().__init__(
            f"{source}: of {span}, {became}. {as_sentence(causes_text(failures))} {then}{_loss_advice(failures)}."
        )


class ReceiptMismatch(StreamsError):
    """What was read does not agree with the plan."""

    def __init__(self, fingerprint: str, problems: list[str]) -> None:
        self.fingerprint, self.problems = fingerprint, problems
        super().__init__(
            f"plan {fingerprint[:12]}: the read does not agree with its plan: {listed(problems)} "
            "Nothing was committed. Run the task again. If it happens again, report it with this message."
        )


class PreflightFailed(StreamsError):
    """Spark's side cannot run the read."""

    foreseeable = True


class SetupNotReady(StreamsError):
    """Doctor found errors in a set-up: its readers would fail, or lose events."""

    def __init__(self, subject: str, failed: Sequence[str]) -> None:
        self.subject, self.failed = subject, tuple(failed)
        super().__init__(
            f"{subject}: {counted(len(failed), 'check')} failed: {listed(failed)} The log has the next step of each."
        )


class TransformFailed(StreamsError):
    """The user's function failed, where it was called or on a row in one of Spark's tasks."""

    def __init__(self, transform: str, window: object, cause: str) -> None:
        self.transform, self.window, self.cause = transform, window, cause
        super().__init__(
            f"transform {transform} failed on window {window}: {as_sentence(cause)} Nothing was landed. "
            "Its traceback is in the log: correct the function, then clear the task."
        )


class TaskCancelled(StreamsError):
    """The task was ended from outside while Spark worked for it: killed, cleared, timed out, or its worker stopped."""

    retryable = True

    def __init__(self) -> None:
        super().__init__(
            "the task was ended from outside (killed, cleared, marked, or its worker stopped) while Spark worked for "
            "it. Nothing was landed after that; clear the task to read the window."
        )
