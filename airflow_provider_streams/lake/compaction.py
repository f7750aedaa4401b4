"""Rewrites many small files of a window as few: the same rows, in files of the size that engines like.

| step | if the process dies after it |
|---|---|
| read the files of a few windows, and write new ones | the table is as it was, and no reader sees the new files |
| put the new files in the place of the old ones, in one commit | the same rows are in fewer files |

A window that another run lands at the same time stays as that run left it. `lake.snapshot_expiry` removes what a killed
compaction leaves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from airflow_provider_streams.errors import CommitStateUnknown, RowsDiffer, SinkError
from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.lake.data_files import ROW_GROUP_BYTES, DataFile, FileTarget
from airflow_provider_streams.lake.file_rewriting import Unfit, remove, rewrite
from airflow_provider_streams.model.sinks.landing import TableMark
from airflow_provider_streams.model.window.window import Window

WINDOWS_AT_ONCE: Final = 16
"""How many windows one commit rewrites."""

_GAIN: Final = 2
"""A window is rewritten if it has this many times the files that it needs."""


@dataclass(frozen=True, slots=True)
class WindowContent:
    """What a table says of one window."""

    files: tuple[DataFile, ...]
    hindrance: str | None = None
    """Why they must stay as they are; None: they may be rewritten."""

    @property
    def rows(self) -> int:
        """In all files."""
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        """Of all files."""
        return sum(file.bytes for file in self.files)

    @property
    def paths(self) -> frozenset[str]:
        """Of all files."""
        return frozenset(file.path for file in self.files)

    def is_worth(self, file_bytes: int) -> bool:
        """Whether far fewer files of this size would do."""
        enough = max(-(-self.bytes // file_bytes), 1)
        return len(self.files) >= _GAIN * enough


def contents_of(found: Iterable[tuple[Window, DataFile, str | None]]) -> dict[Window, WindowContent]:
    """The content of windows, from each file's window and hindrance."""
    files: dict[Window, list[DataFile]] = defaultdict(list)
    hindrances: dict[Window, str | None] = {}
    for window, file, hindrance in found:
        files[window].append(file)
        hindrances[window] = hindrances.get(window) or hindrance
    return {window: WindowContent(tuple(some), hindrances[window]) for window, some in files.items()}


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A window whose rows are also in new files, which no reader sees yet."""

    window: Window
    old: WindowContent
    files: tuple[DataFile, ...]
    target: FileTarget


class CompactableTable(Protocol):
    """A table whose files can be replaced by others with the same rows."""

    def __init__(self, sink: Any, mark: TableMark) -> None:
        """Nothing is touched yet."""

    def contents(self) -> Mapping[Window, WindowContent]:
        """The files of each window that it holds; raises `TableOwnedByOther` or `SinkError`."""

    def target(self, window: Window) -> FileTarget:
        """Where new files of a window go. Call `contents` first."""

    def replace(self, rewritten: Sequence[Rewritten]) -> frozenset[Window]:
        """Put new files in the place of old ones, all in one commit.

        Returns:
            The windows that were replaced; windows whose files others changed stay as they are.

        Raises:
            CommitStateUnknown: the commit may have come through.
            SinkError: nothing was changed.
        """


@dataclass
class Compacted:
    """What became of a table's windows."""

    windows: list[Window] = field(default_factory=list)
    """They have fewer files now; in a dry run, they would have."""
    files_before: int = 0
    files_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    overtaken: list[Window] = field(default_factory=list)
    """Others changed them meanwhile."""
    left: dict[Window, str] = field(default_factory=dict)
    """Why some stay as they are."""
    differing: dict[Window, str] = field(default_factory=dict)
    """They do not hold what they should, so they stay as they are, and a person must look."""

    def count(self, window: Window, old: WindowContent, new: Sequence[DataFile] = ()) -> None:
        """Count a window that is rewritten, or that would be."""
        self.windows.append(window)
        self.files_before += len(old.files)
        self.bytes_before += old.bytes
        self.files_after += len(new)
        self.bytes_after += sum(file.bytes for file in new)

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
    on_progress: Callable[[Compacted, int], None] = lambda _done, _of: None,
) -> Compacted:
    """Rewrite the small files of windows.

    Args:
        table: whose.
        rows: the windows that may be rewritten, and how many rows each must have; None: not known.
        file_bytes: the size that a file should have.
        dry_run: say what would be done, and do nothing.
        on_progress: called after each commit with the result so far, and the number of windows to do.

    Raises:
        CommitStateUnknown: the last commit may have come through; compacting again settles it.
        SinkError: the table cannot be read or written; what is done stays.
    """
    done = Compacted()
    chosen = _chosen(table.contents(), rows, file_bytes, done)
    if dry_run:
        for window, content in chosen.items():
            done.count(window, content)
        return done
    order = list(chosen)
    for first in range(0, len(order), WINDOWS_AT_ONCE):
        some = {window: chosen[window] for window in order[first : first + WINDOWS_AT_ONCE]}
        _compact_some(table, some, file_bytes, done)
        on_progress(done, len(order))
    return done


def _chosen(
    contents: Mapping[Window, WindowContent], rows: Mapping[Window, int | None], file_bytes: int, done: Compacted
) -> dict[Window, WindowContent]:
    """The windows to rewrite, in order. Notes what is wrong with others."""
    chosen = {}
    for window in sorted(contents.keys() & rows.keys()):
        content, wanted = contents[window], rows[window]
        if content.hindrance is not None:
            done.left[window] = content.hindrance
        elif wanted is not None and wanted != content.rows:
            done.differing[window] = f"it has {counted(content.rows, 'row')}, and its receipt says {wanted}"
        elif content.is_worth(file_bytes):
            chosen[window] = content
    return chosen


def _compact_some(
    table: CompactableTable, contents: Mapping[Window, WindowContent], file_bytes: int, done: Compacted
) -> None:
    rewritten: list[Rewritten] = []
    try:
        for window, content in contents.items():
            # each file ends with a row group, so small files need small row groups
            row_group_bytes = min(file_bytes, ROW_GROUP_BYTES)
            target = replace(table.target(window), file_bytes=file_bytes, row_group_bytes=row_group_bytes)
            made = _rewritten(target, window, content, done)
            rewritten += [] if made is None else [made]
        replaced = table.replace(rewritten) if rewritten else frozenset()
    except CommitStateUnknown:
        raise
    except SinkError:
        for one in rewritten:
            remove(one.files, one.target)
        raise
    for one in rewritten:
        if one.window in replaced:
            done.count(one.window, one.old, one.files)
        else:
            remove(one.files, one.target)
            done.overtaken.append(one.window)


def _rewritten(target: FileTarget, window: Window, content: WindowContent, done: Compacted) -> Rewritten | None:
    """A window in new files; None: it stays as it is, and `done` says why."""
    try:
        return Rewritten(window, content, tuple(rewrite(content.files, target)), target)
    except Unfit as error:
        done.left[window] = str(error)
    except RowsDiffer as error:
        done.differing[window] = str(error)
    return None
