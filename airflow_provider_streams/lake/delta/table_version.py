"""A version of a Delta table by delta-rs: what it says, and commits on exactly that version.

A window is judged on a version, so the commit must directly follow that version. delta-rs's own retries judge by other
rules, so they are off. If another commit was first, the caller looks again.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_streams.errors import CommitStateUnknown, SinkError
from airflow_provider_streams.lake.columns import WINDOW_COLUMNS
from airflow_provider_streams.lake.compaction import WindowContent, contents_of
from airflow_provider_streams.lake.data_files import DataFile
from airflow_provider_streams.lake.delta.add_actions import partition_value
from airflow_provider_streams.lake.delta.column_types import has_local_times, has_windows, is_by_window
from airflow_provider_streams.lake.delta.schema_json import grown
from airflow_provider_streams.lake.delta.storage import LOG, errors_of, words_of
from airflow_provider_streams.lake.delta.unmet_requirements import Described, unmet
from airflow_provider_streams.lake.delta.writer_requirements import Use
from airflow_provider_streams.lake.storage import Storage
from airflow_provider_streams.lake.table_properties import CLAIM, WINDOW, mark_in, properties_of
from airflow_provider_streams.model.sinks.landing import TableMark
from airflow_provider_streams.model.window.window import Window

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties
    from deltalake.transaction import AddAction

_LOOKED_BACK: Final = 100
"""How many commits of others there may be since the latest of the reader."""
_COMMIT_KEY = "streams.commit"
"""In a commit's own facts: finds a commit whose answer was lost."""

_NO_PARTITION = "no partition"
"""Which partition a commit replaces that replaces none."""

_DELETED_ROWS = "its files may have rows that are deleted elsewhere (deletion vectors), which its engine compacts"

_LOGS_CLEANED_EVERY = 100
"""Commits. To find what may go, delta-rs would list the whole log after each one; Spark does it with checkpoints."""

_TRIES = 3
"""Of a commit that may still be under way, while no other has taken its version."""

_LOCAL_TIME_FEATURE = "timestampNtz"

_MAKING = {"CREATE TABLE", "ADD FEATURE"}
"""Operations in the history of a table that we made; claiming an empty table that we found is another one."""

TableChange = Callable[["DeltaTable", "CommitProperties"], object]
Facts = Mapping[str, Any]


class DeltaVersion:
    """One version of a table."""

    def __init__(self, storage: Storage, table: DeltaTable) -> None:
        self._storage, self._table = storage, table
        self.number = table.version()
        described = table.metadata()
        # a null is no value; delta-rs hands it on
        self.properties = {name: value for name, value in described.configuration.items() if value is not None}
        self.partition_columns: list[str] = described.partition_columns
        arrow: Any = table.schema().to_arrow()
        self.columns = pa.schema(arrow)
        self.described = _described(table, self.properties)

    def advanced(self) -> DeltaVersion:
        """The newest version, of which only what followed this one is read. Raises errors of delta-rs."""
        self._table.update_incremental()
        return DeltaVersion(self._storage, self._table)

    @property
    def mark(self) -> TableMark | None:
        """Whose it is; None: it names no owner."""
        return mark_in(self.properties)

    @property
    def is_empty(self) -> bool:
        """Whether it has no file."""
        return not self._table.file_uris()

    @property
    def never_landed(self) -> bool:
        """Whether it was made for a reader, and not used since."""
        if self.mark is None or not self.is_empty:
            return False
        with errors_of(self._storage):
            return {one["operation"] for one in self._table.history()} <= _MAKING

    def paths(self) -> set[str]:
        """Of its files, as the store calls them."""
        return {unquote(path) for path in self._add_actions()["path"].to_pylist()}

    def contents(self) -> dict[Window, WindowContent]:
        """The windows that it holds, with their files; a window that was landed without rows has a file as well.

        Raises:
            SinkError: its partitions are no windows.
        """
        return contents_of(self._files())

    def windows_near(self, window: Window) -> set[Window]:
        """The windows that it holds and that share time with one. Raises as `contents`."""
        found = self._add_actions()
        if not found.num_rows:
            return set()
        self._check_windows()
        starts, ends = (found["partition"].combine_chunks().field(name) for name in WINDOW_COLUMNS)
        start, end = (pa.scalar(one, starts.type) for one in (window.start, window.end))
        near: Any = pc.and_(pc.and_(pc.less(starts, end), pc.greater(ends, start)), pc.less(starts, ends))
        edges = (one.filter(near).to_pylist() for one in (starts, ends))
        return {Window(*one) for one in zip(*edges, strict=True)}

    def _check_windows(self) -> None:
        if not has_windows(self.columns, self.partition_columns):
            raise SinkError(
                self._storage.root,
                f"it is not partitioned by {' and '.join(WINDOW_COLUMNS)}, as timestamps, so nothing says which window "
                "a file is of: if that was changed, restore the version before; otherwise land in another table",
            )

    def _files(self) -> Iterator[tuple[Window, DataFile, str | None]]:
        found = self._add_actions()
        if not found.num_rows:
            return
        self._check_windows()
        partitions = found["partition"].combine_chunks()
        edges = (partitions.field(name).to_pylist() for name in WINDOW_COLUMNS)
        facts = (found[name].to_pylist() for name in ("path", "num_records", "size_bytes"))
        for start, end, path, rows, size in zip(*edges, *facts, strict=True):
            if start is not None and end is not None and start < end:  # others may write what is no window
                hindrance = "the log does not say how many rows a file has" if rows is None else None
                yield Window(start, end), DataFile(unquote(path), rows or 0, size), hindrance

    def _add_actions(self) -> Any:
        files: Any = self._table.get_add_actions()
        return pa.table(files)

    def is_bare(self, columns: pa.Schema) -> bool:
        """Whether it has these columns, and no file."""
        from deltalake import Schema  # noqa: PLC0415 - optional

        return self.is_empty and self._table.schema() == Schema.from_arrow(columns)

    @property
    def hindrance(self) -> str | None:
        """Why rows cannot be written as they are; None: they can."""
        if found := unmet(self.described, Use.WINDOWS):
            return found
        if not is_by_window(self.columns, self.partition_columns):
            return f"it must be partitioned by {' and '.join(WINDOW_COLUMNS)}, which are timestamps"
        return None

    def change_hindrance(self, column: str) -> str | None:
        """Why its files cannot be replaced by a partition column; None: they can."""
        if found := unmet(self.described, Use.CHANGES):
            return found
        if self.partition_columns != [column]:
            return f"it must be partitioned by {column} alone"
        return _DELETED_ROWS if self._may_have_deleted_rows else None

    @property
    def expiry_hindrance(self) -> str | None:
        """Why no file of it may be deleted; None: those that nothing needs may."""
        return unmet(self.described, Use.EXPIRY)

    @property
    def _may_have_deleted_rows(self) -> bool:
        return "deletionVectors" in self.described.features

    @property
    def rewriting_hindrance(self) -> str | None:
        """Why its files cannot be rewritten; None: they can."""
        if self._may_have_deleted_rows:
            return _DELETED_ROWS
        return self.hindrance

    def replace(
        self, windows: Sequence[Window] | None, files: Sequence[AddAction], add: pa.Schema, facts: Facts
    ) -> bool:
        """Put files in the place of windows, or of all that it holds, and add columns to the table. See `commit`."""
        starts = None if windows is None else sorted({partition_value(one.start) for one in windows})
        return self._write(files, _with_columns(self._table, add), starts, facts)

    def begin(
        self,
        columns: pa.Schema,
        files: Sequence[AddAction] = (),
        facts: Facts | None = None,
        partition_by: Sequence[str] = WINDOW_COLUMNS,
    ) -> bool:
        """Put files in the place of all that it holds; the table then has exactly these columns.

        Raises:
            SinkError: it is partitioned by other columns, which no commit can change.
        """
        from deltalake import Schema  # noqa: PLC0415 - optional

        return self._write(files, Schema.from_arrow(columns), None, facts, partition_by)

    def _write(
        self,
        files: Sequence[AddAction],
        schema: Any,
        starts: list[str] | None,
        facts: Facts | None,
        partition_by: Sequence[str] = WINDOW_COLUMNS,
    ) -> bool:
        if self.partition_columns != list(partition_by):  # delta-rs would write a log that nothing can read
            raise SinkError(
                self._storage.root,
                f"the table is partitioned by {', '.join(self.partition_columns) or 'nothing'}, and not by "
                f"{' and '.join(partition_by)}: land in another table",
            )
        filters: Any = None if starts is None else [(WINDOW_COLUMNS[0], "in", starts)]
        return self.commit(
            lambda table, properties: table.create_write_transaction(
                list(files),
                "overwrite",
                schema,
                list(partition_by),
                partition_filters=filters,
                commit_properties=properties,
                post_commithook_properties=self._after_commit,
            ),
            facts,
        )

    def claim(self, mark: TableMark) -> bool:
        """Write whose it is into its properties."""
        properties = properties_of(mark)
        return self.commit(
            lambda table, commit: table.alter.set_table_properties(
                properties, raise_if_not_exists=False, commit_properties=commit
            ),
            {CLAIM: mark.id},
        )

    @property
    def is_restored(self) -> bool:
        """Whether another program restored an earlier version since the latest commit of the table's reader."""
        with errors_of(self._storage):
            for one in self._table.history(_LOOKED_BACK):
                if WINDOW in one or CLAIM in one:
                    return False
                if one.get("operation") == "RESTORE":
                    return True
        return False

    def may_have(self, columns: pa.Schema) -> bool:
        """Whether the table has the features that columns of these types need."""
        return not has_local_times(columns) or _LOCAL_TIME_FEATURE in self.described.features

    def allow_local_times(self) -> bool:
        """Give the table the feature for times without a zone, and name those that it had without naming them."""
        from deltalake import TableFeatures  # noqa: PLC0415 - optional

        unnamed = set(self.described.all_features) - self.described.features
        features = [getattr(TableFeatures, name[0].upper() + name[1:]) for name in sorted(unnamed)]
        features.append(TableFeatures.TimestampWithoutTimezone)
        return self.commit(
            lambda table, properties: table.alter.add_feature(
                features, allow_protocol_versions_increase=True, commit_properties=properties
            )
        )

    def application_version(self, application: str) -> int | None:
        """What the latest commit that names an application gave as its version; None: there is none."""
        with errors_of(self._storage):
            return self._table.transaction_version(application)

    def files_by_partition(self, column: str) -> Iterator[tuple[str | None, DataFile]]:
        """The table's files, each with its value of a partition column."""
        found = self._add_actions()
        partitions = found["partition"].combine_chunks().field(column).to_pylist()
        facts = (found[name].to_pylist() for name in ("path", "num_records", "size_bytes"))
        for value, path, rows, size in zip(partitions, *facts, strict=True):
            yield value, DataFile(unquote(path), rows or 0, size)

    def replace_partitions(
        self,
        column: str,
        values: Sequence[str],
        *,
        files: Sequence[AddAction],
        add: pa.Schema,
        facts: Facts,
        applications: Mapping[str, int],
    ) -> bool:
        """Put files in the place of partitions, and add columns to the table. See `commit`.

        Args:
            column: which the table is partitioned by.
            values: of the partitions.
            files: the new ones.
            add: the new columns.
            facts: what the commit says of itself.
            applications: what `application_version` answers from then on.
        """
        filters: Any = [(column, "in", list(values) or [_NO_PARTITION])]
        schema = _with_columns(self._table, add)
        return self.commit(
            lambda table, properties: table.create_write_transaction(
                list(files),
                "overwrite",
                schema,
                [column],
                partition_filters=filters,
                commit_properties=properties,
                post_commithook_properties=self._after_commit,
            ),
            facts,
            applications,
        )

    def commit(
        self, act: TableChange, facts: Facts | None = None, applications: Mapping[str, int] | None = None
    ) -> bool:
        """Commit the version that follows this one; False: another commit took its place.

        Raises:
            TableUnavailable, SinkError: nothing was changed.
            CommitStateUnknown: the commit may have come through.
        """
        from deltalake import CommitProperties, Transaction  # noqa: PLC0415 - optional

        token = uuid.uuid4().hex
        properties = CommitProperties(
            custom_metadata={**(facts or {}), _COMMIT_KEY: token},
            max_commit_retries=0,
            app_transactions=[Transaction(name, version) for name, version in (applications or {}).items()],
        )
        unheard: Exception | None = None
        for _ in range(_TRIES):
            try:
                act(self._table, properties)
            except Exception as error:  # noqa: BLE001 - whatever it is, it may have come through
                found = self._outcome(token, error, unheard)
                unheard = unheard or error
            else:
                return True
            if found is not None:
                return found
        raise CommitStateUnknown(self._storage.root, words_of(unheard or TimeoutError())) from unheard

    @property
    def _after_commit(self) -> PostCommitHookProperties:
        from deltalake import PostCommitHookProperties  # noqa: PLC0415 - optional

        is_cleaned = (self.number + 1) % _LOGS_CLEANED_EVERY == _LOGS_CLEANED_EVERY - 1
        return PostCommitHookProperties(cleanup_expired_logs=None if is_cleaned else False)  # None: the table decides

    def _outcome(self, token: str, cause: Exception, unheard: Exception | None) -> bool | None:
        """Whether a commit with this token came through; False: another one has its version. None: it may still come.

        `cause` is the error of this try, and `unheard` the error of an earlier one, which may still come through.
        """
        system, root = self._storage.open()
        try:
            with system.open_input_stream(entry_of(root, self.number + 1)) as log:
                return token in log.read().decode()
        except FileNotFoundError:
            if unheard is not None and not isinstance(cause, OSError):
                raise CommitStateUnknown(self._storage.root, words_of(cause)) from cause
            if not isinstance(cause, OSError):
                raise SinkError(self._storage.root, f"the commit is refused: {words_of(cause)}") from cause
            if self._storage.is_local:  # no request is under way
                raise self._storage.failure(f"the commit fails: {words_of(cause)}", cause) from cause
            return None
        except (OSError, ValueError) as error:
            raise CommitStateUnknown(self._storage.root, words_of(cause)) from error


def entry_of(root: str, number: int) -> str:
    """Where a version's commit is in the log, below the table's root."""
    return f"{root}/{LOG}/{number:020}.json"


def _described(table: DeltaTable, properties: Mapping[str, str]) -> Described:
    protocol = table.protocol()
    named = (*(protocol.reader_features or ()), *(protocol.writer_features or ()))
    fields = json.loads(table.schema().to_json())["fields"]
    return Described(protocol.min_reader_version, protocol.min_writer_version, frozenset(named), properties, fields)


def _with_columns(table: DeltaTable, add: pa.Schema) -> Any:
    """A table's schema with other columns; the metadata of its own columns, and of the fields in them, stay."""
    from deltalake import Schema  # noqa: PLC0415 - optional

    own = table.schema()
    if not len(add):
        return own
    new = json.loads(Schema.from_arrow(add).to_json())
    return Schema.from_json(json.dumps(grown(json.loads(own.to_json()), new)))
