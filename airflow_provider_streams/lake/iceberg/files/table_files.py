"""The files of an Iceberg table: which windows they hold, where they are, and where new ones go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.catalog import LOCATION, WAREHOUSE_LOCATION, Catalog, MetastoreCatalog
from pyiceberg.conversions import from_bytes
from pyiceberg.exceptions import NoSuchNamespaceError
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.schema import Schema
from pyiceberg.table import FileScanTask, Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import TimestamptzType

from airflow_provider_streams.errors import InvalidRequest, InvalidWindow, SinkError
from airflow_provider_streams.lake.column_types import MOMENT
from airflow_provider_streams.lake.columns import WINDOW_COLUMNS, window_folder
from airflow_provider_streams.lake.data_files import FileTarget
from airflow_provider_streams.lake.iceberg.catalogs.catalog import in_database
from airflow_provider_streams.lake.iceberg.column_types import window_constants
from airflow_provider_streams.lake.iceberg.files.file_io import uses_vended_credentials
from airflow_provider_streams.lake.iceberg.files.locations import data_location
from airflow_provider_streams.lake.storage import Storage
from airflow_provider_streams.model.stream.source import in_uri
from airflow_provider_streams.model.window.window import Window, moment_of_us, utc_text

_STORE_OPTIONS = ("s3.", "gcs.", "adls.", "hdfs.", "client.")


def files_of(table: Table) -> list[FileScanTask]:
    """All files of a table."""
    tasks: Iterable[Any] = table.scan().plan_files()
    return list(tasks)


def windows_of(table: Table, files: Iterable[FileScanTask]) -> frozenset[Window]:
    """The windows that files hold rows of. A window without rows leaves nothing in a table."""
    by_file = [(only_window(table, task), task) for task in files]
    found = {window for window, _ in by_file if window is not None}
    unclear = [task for window, task in by_file if window is None]  # compacted, or without statistics
    return frozenset(found.union(one for one in read_windows(table, unclear) if one is not None))


def windows_in(table: Table, task: FileScanTask) -> frozenset[Window | None]:
    """The windows of one file's rows; None: some are of no window."""
    window = only_window(table, task)
    return frozenset(read_windows(table, [task]) if window is None else [window])


def only_window(table: Table, task: FileScanTask) -> Window | None:
    """The one window of a file; None: its statistics do not show that there is only one. Raises as `read_windows`."""
    edges = []
    for name in WINDOW_COLUMNS:
        field = table.schema().find_field(name)
        lower, upper = ((one or {}).get(field.field_id) for one in (task.file.lower_bounds, task.file.upper_bounds))
        nulls = 0 if field.required else (task.file.null_value_counts or {}).get(field.field_id)
        if lower is None or lower != upper or nulls != 0:
            return None
        edges.append(int(from_bytes(TimestamptzType(), lower)))
    return None if task.delete_files else _window_of(table, edges[0], edges[1])


def read_windows(table: Table, files: list[FileScanTask]) -> Iterator[Window | None]:
    """The windows of the rows in files, which are read for it; None: some are of no window.

    Raises:
        SinkError: the window columns of a row hold values that are no window.
    """
    if not files:
        return
    columns = table.schema().select(*WINDOW_COLUMNS)
    scan = ArrowScan(table.metadata, table.io, columns, AlwaysTrue())
    for batch in scan.to_record_batches(files):
        edges = pa.Table.from_batches([batch]).group_by(list(WINDOW_COLUMNS)).aggregate([])
        micros = (edges.column(name).cast(MOMENT).cast(pa.int64()).to_pylist() for name in WINDOW_COLUMNS)
        for start, end in zip(*micros, strict=True):
            yield None if start is None or end is None else _window_of(table, start, end)


def _window_of(table: Table, start: int, end: int) -> Window:
    """A window from the microseconds of its edges. `SinkError`: it is none."""
    try:
        return Window(*(moment_of_us(edge) for edge in (start, end)))
    except (InvalidWindow, OverflowError) as error:
        first, last = WINDOW_COLUMNS
        raise SinkError(
            f"{table.catalog.name}:{'.'.join(table.name())}",
            f"a row has {first} {_shown(start)} and {last} {_shown(end)}, which are no window: another program wrote "
            "it, or renamed these columns. Delete or correct such rows with your engine, or undo the renaming",
        ) from error


def _shown(micros: int) -> str:
    try:
        return utc_text(moment_of_us(micros))
    except OverflowError:
        return f"{micros} microseconds after 1970"


def rows_beside(metadata: TableMetadata, io: FileIO, task: FileScanTask, window: Window) -> pa.Table:
    """The rows of a file that are neither of a window nor of one that shares time with it."""
    found = ArrowScan(metadata, io, metadata.schema(), AlwaysTrue()).to_table([task])
    start, end = (found[name] for name in WINDOW_COLUMNS)
    edges = [pa.scalar(one, start.type) for one in (window.start, window.end)]
    # no window ends before it begins: such rows are of none
    shares: Any = pc.and_(pc.less(start, end), pc.and_(pc.less(start, edges[1]), pc.greater(end, edges[0])))
    return found.filter(pc.invert(pc.fill_null(shares, False)))


def target_in(table: Table, window: Window, attempt: str, columns: pa.Schema, schema: Schema) -> FileTarget:
    """Where an attempt's files of a window go. `schema` is the table's after the attempt."""
    made = FileTarget(
        storage_of(table),
        window_folder(window, WINDOW_COLUMNS[:1]),
        f"{attempt}-",
        columns,
        window_constants(window, schema),
    )
    made.storage.make_folder(made.folder)
    return made


def storage_of(table: Table) -> Storage:
    """Where its data files are, and how to reach them, also with vended credentials."""
    return storage_at(table, data_location(table))


def storage_at(table: Table, location: str) -> Storage:
    """A folder in the spelling of the table's metadata, reached like its data files."""
    return _storage(location, table.catalog, table.io.properties)


def storage_to_come(catalog: Catalog, name: str) -> Storage | None:
    """Where the data files of a table would be that is not made yet; None: only the catalog's server knows.

    Raises:
        InvalidRequest: the catalog is in a database, and names no place.
    """
    *namespace, table = name.split(".")
    around = _location_of(catalog, tuple(namespace)) if isinstance(catalog, MetastoreCatalog) else None
    if around is None and in_database(catalog) is not None:
        raise InvalidRequest(
            f"the catalog has no warehouse, so it cannot make the table {name}: add 'warehouse' to the extra of its "
            "connection, such as s3://bucket/warehouse or file:///lake"
        )
    return _storage(f"{around}/{table}/data", catalog, catalog.properties) if around else None


def _location_of(catalog: Catalog, namespace: tuple[str, ...]) -> str | None:
    """The folder of a namespace, as pyiceberg chooses it; None: a server chooses it when it makes the namespace."""
    is_in_database = in_database(catalog) is not None
    try:
        given = catalog.load_namespace_properties(namespace).get(LOCATION)
    except NoSuchNamespaceError:
        if not is_in_database:
            return None
        given = None
    if given:
        return str(given).rstrip("/")
    warehouse = catalog.properties.get(WAREHOUSE_LOCATION)
    suffix = "" if is_in_database else ".db"  # Hive's way, which Glue and DynamoDB follow
    return f"{str(warehouse).rstrip('/')}/{'.'.join(namespace)}{suffix}" if warehouse else None


def _storage(location: str, catalog: Catalog, properties: Mapping[str, Any]) -> Storage:
    url = urlsplit(location)
    options = {name: str(value) for name, value in properties.items() if name.startswith(_STORE_OPTIONS)}
    root = f"{url.scheme or 'file'}://{url.netloc}{in_uri(url.path)}"
    return Storage(root, options, uses_vended_credentials(catalog, options))
