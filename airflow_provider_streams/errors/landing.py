"""Errors of landing in tables."""

from __future__ import annotations

from airflow_provider_streams.errors.base import StreamsError, as_sentence, because
from airflow_provider_streams.errors.plurals import counted


class RowCountDecreased(StreamsError):
    """A read would land fewer rows than its window holds in the table."""

    def __init__(self, source: object, window: object, held: int, rows: int | None, lost: str = "") -> None:
        self.source, self.window, self.held, self.rows = source, window, held, rows
        leaves = f"this read would leave {rows:,}" if rows is not None else "its new plan cannot hold all of them"
        super().__init__(
            f"{source}: window {window} was landed from {counted(held, 'row')} of the stream, and "
            f"{leaves}{because(lost)}. "
            "Nothing was replaced, and its plan stays. The stream may have been trimmed since, or late rows were read "
            "that this plan does not reach. If fewer rows are right, run it again with allow_fewer_rows=True."
        )


class SinkError(StreamsError):
    """The table could not be written."""

    def __init__(self, target: str, detail: str) -> None:
        self.target = target
        super().__init__(f"{target}: {detail}")


class TableOwnedByOther(SinkError):
    """The table belongs to another reader, source or journal, or its owner is not known."""

    foreseeable = True


class TableRecreated(TableOwnedByOther):
    """The reader's table was made again, by another of its runs, after this one began. Nothing was changed."""

    retryable = True

    def __init__(self, target: str) -> None:
        super().__init__(
            target,
            "another run of this reader made it again after this run began: the table was dropped, or landed again "
            "with full_refresh=True. The next attempt reads what the reader lands now, and goes on from there",
        )


class RowsDiffer(SinkError):
    """Windows do not hold the rows that their receipts, or the table itself, say. They stay as they are."""


class ConcurrentCommit(SinkError):
    """Another attempt landed the window, or one that shares time with it, after this one began. Nothing was changed."""

    retryable = True

    def __init__(self, target: str, window: object, landed: object) -> None:
        self.window, self.landed = window, landed
        what = "it"
        hint = "The same task may run twice; the next attempt lands the window once more"
        if str(landed) != str(window):
            what = f"{landed}, another window that shares time with it,"
            hint = "Read only one of the two. With overlap='replace', this window removes the other one from the table"
        super().__init__(
            target, f"window {window} cannot be landed: {what} was landed by another run after this one began. {hint}"
        )


class TableUnavailable(SinkError):
    """The store or the catalog that keeps the table does not answer, or fails for a while. Nothing was changed."""

    retryable = True
    foreseeable = True


class CredentialsExpired(TableUnavailable):
    """Credentials that the catalog vended for the table's files are no longer valid; each attempt gets new ones."""

    def __init__(self, target: str, detail: str) -> None:
        super().__init__(
            target,
            f"the credentials that its catalog vended have expired: {as_sentence(detail)} The next attempt gets "
            "new ones. If they do not last as long as a read, land shorter windows, or let the catalog vend them for "
            "longer",
        )


class StorageFull(SinkError):
    """There is no room for the window's files. Nothing was changed."""

    foreseeable = True

    def __init__(self, target: str, detail: str) -> None:
        super().__init__(target, f"there is no room left: {as_sentence(detail)} Free some, then land the window again")


class CommitStateUnknown(SinkError):
    """A commit was sent, and its result is unknown: the table has the old window or the new one."""

    retryable = True

    def __init__(self, target: str, detail: str) -> None:
        super().__init__(
            target,
            f"the result of the commit is unknown: {as_sentence(detail)} The window is as it was, or "
            "replaced as a whole. Landing it again settles that; its files stay where they are until then",
        )
