"""Many small files of a window become few: the same rows, in files of the size that engines like.

| step | a kill after it leaves |
|---|---|
| files of a few windows are read, and written anew beside them | the table as it was, and files that no reader sees |
| one commit puts the new files in the old ones' place | the same rows in fewer files |

A window that another run lands meanwhile stays as that run left it. What a kill leaves, `lake.expiry` removes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from airflow_provider_streams.errors import CommitUnknown, RowsDiffer, SinkError
from airflow_provider_streams.lake.files import ROW_GROUP_BYTES, DataFile, FileTarget
from airflow_provider_streams.lake.rewriting import Unfit, remove, rewrite
from airflow_provider_streams.model.landing import TableMark
from airflow_provider_streams.model.window import Window

WINDOWS_AT_ONCE: Final = 16
"""One commit replaces the files of so many."""

_GAIN: Final = 2
"""A window is rewritten where it has so many times the files that would do."""


@dataclass(frozen=True, slots=True)
class WindowContent:
    """What a table says of one window."""

    files: tuple[DataFile, ...]
    hindrance: str | None = None
    """Why they must stay as they are; None: they need not."""

    @property
    def rows(self) -> int:
        """In all files."""
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        """Of all files."""
        return sum(file.bytes for file in self.files)

    def is_worth(self, file_bytes: int) -> bool:
        """Whether few files would do, where there are many."""
        enough = max(-(-self.bytes // file_bytes), 1)
        return len(self.files) >= _GAIN * enough


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A window whose rows are in new files, too, which no reader sees yet."""

    window: Window
    old: WindowContent
    files: tuple[DataFile, ...]
    target: FileTarget

    @property
    def old_paths(self) -> frozenset[str]:
        """Of the files that are to go."""
        return frozenset(file.path for file in self.old.files)


class CompactableTable(Protocol):
    """A table whose files can be replaced by others with the same rows."""

    def __init__(self, sink: Any, mark: TableMark) -> None:
        """Nothing is touched yet."""

    def contents(self) -> Mapping[Window, WindowContent]:
        """The files of each window that it holds.

        Raises:
            ForeignTable: it does not bear the mark.
            SinkError: it cannot be looked at.
        """

    def target(self, window: Window, file_bytes: int) -> FileTarget:
        """Where new files of a window go. `contents` was asked before."""

    def replace(self, rewritten: Sequence[Rewritten]) -> frozenset[Window]:
        """Put new files in the place of old ones, all in one commit.

        Returns:
            The windows of which that is done; not those that hold other files by now.

        Raises:
            CommitUnknown: nobody can say whether it came through.
            SinkError: nothing was changed.
        """


@dataclass
class Compacted:
    """What became of a table's windows."""

    windows: list[Window] = field(default_factory=list)
    """Those that have fewer files now; of a dry run, that would have."""
    files_before: int = 0
    files_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    overtaken: list[Window] = field(default_factory=list)
    """Others changed them meanwhile."""
    left: dict[Window, str] = field(default_factory=dict)
    """Why some stay as they are."""
    differing: dict[Window, str] = field(default_factory=dict)
    """Those that do not hold what they should: they stay as they are, and somebody must look."""

    def count(self, one: Rewritten) -> None:
        """It is done."""
        self.expect(one.window, one.old)
        self.files_after += len(one.files)
        self.bytes_after += sum(file.bytes for file in one.files)

    def expect(self, window: Window, old: WindowContent) -> None:
        """It would be done."""
        self.windows.append(window)
        self.files_before += len(old.files)
        self.bytes_before += old.bytes

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        names = ("files_before", "files_after", "bytes_before", "bytes_after")
        return {
            "windows": len(self.windows),
            **{name: getattr(self, name) for name in names},
            "overtaken": [str(window) for window in self.overtaken],
            "left": {str(window): why for window, why in self.left.items()},
        }


def compact(
    table: CompactableTable,
    rows: Mapping[Window, int | None],
    file_bytes: int,
    *,
    dry_run: bool = False,
    told: Callable[[Compacted, int], None] = lambda _done, _of: None,
) -> Compacted:
    """Rewrite the small files of windows.

    Args:
        table: whose.
        rows: the windows that may be rewritten, and how many rows each must have; None: nobody counted.
        file_bytes: the size that a file should have.
        dry_run: say what would be done, and do nothing.
        told: called with what is done, of how many windows, after each commit.

    Raises:
        CommitUnknown: nobody can say whether the last commit came through; once more settles it.
        SinkError: the table cannot be read or written; what is done stays.
    """
    done = Compacted()
    chosen = _chosen(table.contents(), rows, file_bytes, done)
    if dry_run:
        for window, content in chosen.items():
            done.expect(window, content)
        return done
    order = sorted(chosen)
    for first in range(0, len(order), WINDOWS_AT_ONCE):
        some = {window: chosen[window] for window in order[first : first + WINDOWS_AT_ONCE]}
        _compact_some(table, some, file_bytes, done)
        told(done, len(order))
    return done


def of_size(target: FileTarget, file_bytes: int) -> FileTarget:
    """For files of a size; each ends with a row group, so those of small ones are small."""
    return replace(target, file_bytes=file_bytes, row_group_bytes=min(file_bytes, ROW_GROUP_BYTES))


def _chosen(
    contents: Mapping[Window, WindowContent], rows: Mapping[Window, int | None], file_bytes: int, done: Compacted
) -> dict[Window, WindowContent]:
    """The windows that are to be rewritten. What is wrong with others is noted."""
    chosen = {}
    for window in sorted(contents.keys() & rows.keys()):
        content, wanted = contents[window], rows[window]
        if content.hindrance is not None:
            done.left[window] = content.hindrance
        elif wanted is not None and wanted != content.rows:
            done.differing[window] = f"it has {content.rows} rows, and its receipt says {wanted}"
        elif content.is_worth(file_bytes):
            chosen[window] = content
    return chosen


def _compact_some(
    table: CompactableTable, contents: Mapping[Window, WindowContent], file_bytes: int, done: Compacted
) -> None:
    rewritten: list[Rewritten] = []
    try:
        for window, content in contents.items():
            made = _rewritten(table.target(window, file_bytes), window, content, done)
            rewritten += [] if made is None else [made]
        replaced = table.replace(rewritten) if rewritten else frozenset()
    except CommitUnknown:
        raise
    except SinkError:
        for one in rewritten:
            remove(one.files, one.target)
        raise
    for one in rewritten:
        if one.window in replaced:
            done.count(one)
        else:
            remove(one.files, one.target)
            done.overtaken.append(one.window)


def _rewritten(target: FileTarget, window: Window, content: WindowContent, done: Compacted) -> Rewritten | None:
    """A window in new files; None: it stays as it is, and why is noted."""
    try:
        return Rewritten(window, content, tuple(rewrite(content.files, target)), target)
    except Unfit as error:
        done.left[window] = str(error)
    except RowsDiffer as error:
        done.differing[window] = str(error)
    return None
