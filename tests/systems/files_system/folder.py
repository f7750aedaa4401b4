"""What is in a folder: the number of each event, and when it was published."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow_provider_streams.errors import SourceNotFound, StartTrimmed, WindowNotReady
from airflow_provider_streams.model.plan.plan import (
    Estimate,
    Plan,
    PlanRequest,
    Range,
    SourceRef,
    Span,
    Split,
)
from airflow_provider_streams.model.plan.row_filter import RowFilter
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.position import Position

SPLIT_EVENTS = 5


class Folder:
    """One stream: its files are named by their numbers, and only the first of them are ever removed."""

    def __init__(self, root: str, name: str) -> None:
        self.path, self.name = Path(root) / name, name
        if not self.path.is_dir():
            raise SourceNotFound(name)

    def file(self, number: int) -> Path:
        return self.path / str(number)

    def published(self, number: int) -> datetime:
        return datetime.fromtimestamp(self.file(number).stat().st_mtime, UTC)

    @property
    def numbers(self) -> list[int]:
        return sorted(int(file.name) for file in self.path.iterdir())

    @property
    def head(self) -> int:
        return next(iter(self.numbers), 0)

    @property
    def tail(self) -> int:
        return max(self.numbers, default=-1) + 1

    @property
    def incarnation(self) -> tuple[tuple[str, str], ...]:
        return ((self.name, str(self.path.stat().st_ino)),)

    def at(self, moment: datetime) -> int:
        """The first event published at or after a moment."""
        return next((number for number in self.numbers if self.published(number) >= moment), self.tail)

    def cut(self, number: int) -> Cut:
        return Cut({self.name: Position.of(number)})


def plan(folder: Folder, request: PlanRequest) -> Plan:
    """Where a window is in a folder."""
    window, by_time = request.window, request.basis == "publish"
    if by_time and window.end > datetime.now(UTC):
        raise WindowNotReady(request.source, window, "files are still being written")
    slack = request.slack if by_time else timedelta(0)
    start = request.start_cut or folder.cut(folder.at(window.start - slack) if by_time else folder.head)
    end = request.end_cut or folder.cut(folder.at(window.end + slack) if by_time else folder.tail)
    (first,), (last,) = start[folder.name].parts, end[folder.name].parts
    if first < folder.head:
        raise StartTrimmed(folder.name, start[folder.name], Position.of(folder.head))
    splits = tuple(_splits(folder, first, last))
    size, head = sum(split.bytes for split in splits), Position.of(folder.head)
    one = Range(
        folder.name, start[folder.name], end[folder.name], size, last - first, head, "ok" if splits else "empty"
    )
    return Plan(
        reader=request.reader,
        source=SourceRef("files", str(folder.path.parent), (folder.name,), folder.incarnation),
        window=window,
        basis=request.basis,
        filter=RowFilter("publish_time", window.start_ms, window.end_ms) if by_time else None,
        start_cut=start,
        end_cut=end,
        ranges=(one,),
        splits=splits,
        estimate=Estimate(size, last - first),
        observed_at=datetime.now(UTC),
        head=folder.cut(folder.head),
        losses=(),
    )


def _splits(folder: Folder, first: int, last: int) -> Iterator[Split]:
    for index, start in enumerate(range(first, last, SPLIT_EVENTS)):
        end = min(start + SPLIT_EVENTS, last)
        size = sum(folder.file(number).stat().st_size for number in range(start, end))
        yield Split(index, folder.name, Position.of(start), Position.of(end), size, (Span(0, start, end),))
