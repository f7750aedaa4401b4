"""Which entries a read has seen, and which planned ones it has not. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from airflow_provider_streams.model.plan.plan import Span


class Seen:
    """Entries in reading order, kept as runs: an unbroken ledger is one run."""

    def __init__(self) -> None:
        self.entries = 0
        self._runs: list[Span] = []
        self._ledger, self._first, self._next = -1, 0, 0

    def add(self, ledger: int, entry: int) -> None:
        """Note one entry, which must follow the one before."""
        self.entries += 1
        if entry != self._next or ledger != self._ledger:
            self._close_run()
            self._ledger, self._first = ledger, entry
        self._next = entry + 1

    def runs(self) -> tuple[Span, ...]:
        """The seen entries as maximal runs."""
        self._close_run()
        self._first = self._next
        return tuple(self._runs)

    def _close_run(self) -> None:
        if self._first < self._next:
            self._runs.append(Span(self._ledger, self._first, self._next))


def missing(planned: Iterable[Span], seen: Sequence[Span]) -> tuple[Span, ...]:
    """The planned entries that are in no run of `seen`; both are sorted and without overlap."""
    gaps: list[Span] = []
    at = 0
    for span in planned:
        first = span.first
        while at < len(seen) and (seen[at].run, seen[at].end) <= (span.run, first):
            at += 1
        for run in seen[at:]:
            if run.run != span.run or run.first >= span.end:
                break
            if run.first > first:
                gaps.append(Span(span.run, first, run.first))
            first = max(first, run.end)
            at += run.end <= span.end
        if first < span.end:
            gaps.append(Span(span.run, first, span.end))
    return tuple(gaps)
