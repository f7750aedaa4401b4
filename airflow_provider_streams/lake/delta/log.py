"""A Delta table's log by delta-rs: what one version of the table says, and commits on exactly that version.

Whether a window may be replaced is judged on a version, so the commit must come right behind it: none of delta-rs's own
retries, which judge by rules of theirs. Where another commit was first, whoever asked looks again.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa

from airflow_provider_streams.errors import CommitUnknown, MissingDependency, SinkError
from airflow_provider_streams.lake.columns import WINDOW_COLUMNS
from airflow_provider_streams.lake.delta.files import partition_value
from airflow_provider_streams.lake.delta.storage import errors_of, location_of, object_store_options, words_of
from airflow_provider_streams.lake.delta.types import has_local_times, is_by_window
from airflow_provider_streams.lake.files import DataFile
from airflow_provider_streams.lake.owner import mark_in, properties_of
from airflow_provider_streams.lake.storage import Storage
from airflow_provider_streams.model.landing import TableMark
from airflow_provider_streams.model.window import Window

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable
    from deltalake.transaction import AddAction

_COMMIT_KEY = "streams.commit"
"""In a commit's own facts: by it, one whose answer was lost is found again."""

_TRIES = 3
"""Of a commit that may be on its way still, while nobody has taken its version."""

_LOCAL_TIME_FEATURE = "timestampNtz"

_MAKING = {"CREATE TABLE", "ADD FEATURE"}
"""Operations of a history by which we make a table; one that was found empty was claimed by another."""

Act = Callable[["DeltaTable", "CommitProperties"], object]


class DeltaVersion:
    """One version of a table."""

    def __init__(self, storage: Storage, table: DeltaTable) -> None:
        self._storage, self._table = storage, table
        self.number = table.version()
        described = table.metadata()
        self.properties: dict[str, str] = described.configuration
        self.partition_columns: list[str] = described.partition_columns
        arrow: Any = table.schema().to_arrow()
        self.columns = pa.schema(arrow)

    @property
    def mark(self) -> TableMark | None:
        """Whose it is; None: it does not say."""
        return mark_in(self.properties)

    @property
    def is_empty(self) -> bool:
        """Whether it has no file."""
        return not self._table.file_uris()

    @property
    def never_landed(self) -> bool:
        """Whether it was made for a reader, and nothing was done with it since."""
        if self.mark is None or not self.is_empty:
            return False
        with errors_of(self._storage):
            return {one["operation"] for one in self._table.history()} <= _MAKING

    def windows(self) -> frozenset[Window]:
        """Those it holds; one that was landed without rows has a file as well."""
        return frozenset(window for window, _ in self.files())

    def paths(self) -> list[str]:
        """Of its files, as the store calls them."""
        files: Any = self._table.get_add_actions()
        found: Any = pa.table(files)
        return [unquote(path) for path in found["path"].to_pylist()]

    def files(self) -> Iterator[tuple[Window, DataFile]]:
        """Those it has, and the windows they hold; one of -1 rows does not say how many it has."""
        files: Any = self._table.get_add_actions()
        found: Any = pa.table(files)
        partitions = found["partition"].combine_chunks()
        edges = (partitions.field(name).to_pylist() for name in WINDOW_COLUMNS)
        facts = (found[name].to_pylist() for name in ("path", "num_records", "size_bytes"))
        for start, end, path, rows, size in zip(*edges, *facts, strict=True):
            if start is not None and end is not None:
                yield Window(start, end), DataFile(unquote(path), -1 if rows is None else rows, size)

    def has_feature(self, name: str) -> bool:
        """Whether readers must know a feature of Delta."""
        return name in (self._table.protocol().reader_features or [])

    def is_bare(self, columns: pa.Schema) -> bool:
        """Whether it has these columns, and no file."""
        from deltalake import Schema  # noqa: PLC0415 - optional

        return self.is_empty and self._table.schema() == Schema.from_arrow(columns)

    @property
    def hindrance(self) -> str | None:
        """Why rows cannot be written as they are; None: they can."""
        if self.properties.get("delta.columnMapping.mode", "none") != "none":
            return "its columns have other names in its files (delta.columnMapping.mode)"
        if any(name.startswith("delta.constraints.") for name in self.properties):
            return "it has constraints, which nobody would check"
        if self.properties.get("delta.appendOnly", "false").lower() == "true":
            return "nothing may be taken out of it (delta.appendOnly), so no window could be replaced"
        if not is_by_window(self.columns, self.partition_columns):
            return f"it must be partitioned by {' and '.join(WINDOW_COLUMNS)}, which are timestamps"
        return None

    def replace(self, windows: Sequence[Window], files: Sequence[AddAction], add: pa.Schema, facts: Facts) -> bool:
        """Put files in the place of windows, and give the table columns that it lacks.

        Raises:
            SinkError: see `commit`.
        """
        starts = sorted({partition_value(one.start) for one in windows})
        schema = _with_columns(self._table, add)

        def act(table: DeltaTable, properties: CommitProperties) -> None:
            table.create_write_transaction(
                list(files),
                "overwrite",
                schema,
                list(WINDOW_COLUMNS),
                partition_filters=[(WINDOW_COLUMNS[0], "in", starts)],
                commit_properties=properties,
            )

        return self.commit(act, facts)

    def begin(self, columns: pa.Schema, files: Sequence[AddAction] = (), facts: Facts | None = None) -> bool:
        """Put files in the place of all that it holds; the table then has these columns, and no others.

        Raises:
            SinkError: see `commit`.
        """
        from deltalake import Schema  # noqa: PLC0415 - optional

        schema = Schema.from_arrow(columns)
        return self.commit(
            lambda table, properties: table.create_write_transaction(
                list(files), "overwrite", schema, list(WINDOW_COLUMNS), commit_properties=properties
            ),
            facts,
        )

    def claim(self, mark: TableMark) -> bool:
        """Say whose it is.

        Raises:
            SinkError: see `commit`.
        """
        properties = properties_of(mark)
        return self.commit(
            lambda table, commit: table.alter.set_table_properties(
                properties, raise_if_not_exists=False, commit_properties=commit
            )
        )

    def may_have(self, columns: pa.Schema) -> bool:
        """Whether the table says of itself what columns of these types need."""
        features = self._table.protocol().writer_features or []
        return not has_local_times(columns) or _LOCAL_TIME_FEATURE in features

    def allow_local_times(self) -> bool:
        """Let it have times of no zone.

        Raises:
            SinkError: see `commit`.
        """
        from deltalake import TableFeatures  # noqa: PLC0415 - optional

        feature = TableFeatures.TimestampWithoutTimezone
        return self.commit(
            lambda table, properties: table.alter.add_feature(
                feature, allow_protocol_versions_increase=True, commit_properties=properties
            )
        )

    def commit(self, act: Act, facts: Facts | None = None) -> bool:
        """Whether it came right behind this version; False: another one did.

        Raises:
            TableUnavailable: nothing was changed.
            SinkError: nothing was changed.
            CommitUnknown: nobody can say.
        """
        from deltalake import CommitProperties  # noqa: PLC0415 - optional

        token = uuid.uuid4().hex
        properties = CommitProperties(custom_metadata={**(facts or {}), _COMMIT_KEY: token}, max_commit_retries=0)
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
        raise CommitUnknown(self._storage.root, words_of(unheard or TimeoutError())) from unheard

    def _outcome(self, token: str, cause: Exception, unheard: Exception | None) -> bool | None:
        """Whether a commit is there, or never will be, as its version is another's; None: it may still come.

        Args:
            token: by which it is found.
            cause: what was said of it.
            unheard: what was said of an earlier try, which may still come, whatever becomes of this one.
        """
        system, root = self._storage.open()
        try:
            with system.open_input_stream(f"{root}/_delta_log/{self.number + 1:020}.json") as log:
                return token in log.read().decode()
        except FileNotFoundError:
            if unheard is not None and not isinstance(cause, OSError):
                raise CommitUnknown(self._storage.root, words_of(cause)) from cause
            if not isinstance(cause, OSError):
                raise SinkError(self._storage.root, f"the commit is refused: {words_of(cause)}") from cause
            if self._storage.root.startswith("file:"):  # where nothing is on its way
                raise self._storage.failure(f"the commit fails: {words_of(cause)}", cause) from cause
            return None
        except (OSError, ValueError) as error:
            raise CommitUnknown(self._storage.root, words_of(cause)) from error


Facts = Mapping[str, Any]


def load(storage: Storage) -> DeltaVersion | None:
    """The newest version of a table; None: there is no table.

    Raises:
        TableUnavailable: the store does not answer.
        SinkError: it cannot be read.
    """
    table_type = _deltalake().DeltaTable
    not_found = _deltalake().exceptions.TableNotFoundError
    with errors_of(storage):
        try:
            return DeltaVersion(
                storage, table_type(location_of(storage), storage_options=object_store_options(storage))
            )
        except not_found:
            return None


def make(storage: Storage, columns: pa.Schema, mark: TableMark) -> None:
    """Make a table, if there is none.

    Raises:
        SinkError: it cannot be made.
    """
    with errors_of(storage):
        try:
            _deltalake().DeltaTable.create(
                location_of(storage),
                columns,
                partition_by=list(WINDOW_COLUMNS),
                configuration=properties_of(mark),
                storage_options=object_store_options(storage),
                raise_if_key_not_exists=False,
            )
        except Exception:
            if load(storage) is None:
                raise


def _with_columns(table: DeltaTable, add: pa.Schema) -> Any:
    """A table's schema with other columns; what it says of its own ones stays."""
    from deltalake import Field, Schema  # noqa: PLC0415 - optional

    new = {one.name: Field.from_arrow(one) for one in add}
    own = table.schema()
    kept = [
        Field(one.name, new.pop(one.name).type, metadata=one.metadata) if one.name in new else one for one in own.fields
    ]
    return Schema([*kept, *new.values()]) if len(add) else own


def _deltalake() -> Any:
    try:
        import deltalake  # noqa: PLC0415 - optional
        import deltalake.exceptions  # noqa: PLC0415
    except ImportError as error:
        raise MissingDependency("deltalake", "delta") from error
    return deltalake
