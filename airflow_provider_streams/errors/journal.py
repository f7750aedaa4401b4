"""Errors of the journal, and of the plans that it pins."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_streams.errors.base import StreamsError, listed


class JournalError(StreamsError):
    """The journal cannot be used."""

    foreseeable = True


class JournalUnavailable(JournalError):
    """Its database does not answer, or is busy."""

    retryable = True


class PlanMismatch(StreamsError):
    """A plan is not the one it claims to be."""


class PlanOptionsChanged(PlanMismatch):
    """The pinned plan of a window was made with other options."""

    def __init__(self, source: object, window: object, changes: Sequence[str]) -> None:
        self.source, self.window, self.changes = source, window, tuple(changes)
        super().__init__(
            f"{source}: the plan of window {window} was pinned with other options: {listed(changes)} Use the same "
            "options as before, or make a new plan with replan=True."
        )


class SourceReplaced(PlanMismatch):
    """A plan was made for another cluster, or for an earlier incarnation of its source. Its positions mean nothing."""

    def __init__(self, source: object, planned: str, found: str) -> None:
        self.source, self.planned, self.found = source, planned, found
        super().__init__(
            f"{source}: the plan was made for {planned}, but the connection leads to {found}. Positions are valid on "
            "one cluster and for one incarnation of a source. Check where the connection leads. If the source was made "
            "again on purpose, plan its windows again (replan=True)."
        )
