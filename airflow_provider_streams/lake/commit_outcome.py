"""Whether an attempt's files may be removed: never once a commit may have come through."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from airflow_provider_streams.errors import CommitStateUnknown, SinkError, WindowsOverlap


@dataclass
class CommitOutcome:
    """What is known of an attempt's commit."""

    may_be_landed: bool = False
    """Whether the table names the attempt's files, or may name them."""

    @contextmanager
    def committing(self) -> Iterator[None]:
        """While the commit is made. Until there is an answer it may be landed, whatever ends this, even a signal.

        Only errors that say that nothing was changed are such an answer. A commit that is answered sets
        `may_be_landed` itself if it was refused.
        """
        self.may_be_landed = True
        try:
            yield
        except CommitStateUnknown:
            raise
        except (SinkError, WindowsOverlap):
            self.may_be_landed = False
            raise
