"""The table: its catalog and store, its owner, its columns, and the free space for its files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Final

from airflow_provider_streams.connections.table_properties import properties_of
from airflow_provider_streams.doctor.disk_space import SpaceNeed
from airflow_provider_streams.doctor.finding import Finding, Notes
from airflow_provider_streams.doctor.schema import planned
from airflow_provider_streams.doctor.setup import DEFAULT_READER, Setup
from airflow_provider_streams.errors import StorageFull, StreamsError, TableOwnedByOther, TableUnavailable
from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.hooks.base import StreamHook
from airflow_provider_streams.lake import connections
from airflow_provider_streams.lake.registry import writer_of
from airflow_provider_streams.model.optional_dependencies import MODULES, require
from airflow_provider_streams.model.sinks.landing import Landing, TableMark, TableState, TableTerms
from airflow_provider_streams.model.sinks.placeholders import is_fan_out
from airflow_provider_streams.model.sinks.table_sink import TableSink
from airflow_provider_streams.windows.claim.plan_fits_table import check_rows

if TYPE_CHECKING:
    from airflow_provider_streams.lake.storage import Storage
    from airflow_provider_streams.lake.writer import Unseen

_FREE: Final = "Free some space, or name another folder or bucket"
_SPACE: Final = SpaceNeed(error_below=8 * 1024**2, warning_below=1024**3, advice=_FREE)
_REACH: Final = "Check the sink's connection, its keys, and that catalog and store answer"
_GRANT_CATALOG: Final = "Let this user write the catalog's database, or name another catalog in the sink's connection"
_ONLY_SPARK: Final = "Read one window. With a Spark connection (--spark-conn-id), see also classes of the area spark"
_CORRECT: Final = "Do what the message says, or name another place in the sink"
_OTHER_TABLE: Final = "Land in another table"
_SAY_HOW: Final = "Give --value-format: the format that readers will use, or bytes"
_NAME_READER: Final = (
    f"Name the reader that will land there (--reader): without a name, `airflow streams read` is {DEFAULT_READER}"
)
_GRANT_FOLDER: Final = "Let this user write there, or name another folder"


def check_sink(setup: Setup, hook: StreamHook | None) -> list[Finding]:
    """Installed packages, table, columns, free space; and a file of ours, if it may be written.

    Args:
        setup: names the sink.
        hook: knows the columns of the source's rows; None: it cannot be asked.
    """
    notes = Notes("sink")
    if setup.sink is None:
        notes.skipped("table", "no sink was named")
        return notes.findings
    if is_fan_out(setup.sink):
        notes.skipped("table", f"{setup.sink} is a table for each topic or stream", "Name one of these tables")
        return notes.findings
    connections.resolve_by(properties_of)
    with notes.failing("installed", "Install what the message names"):
        if setup.sink.kind in MODULES:
            require(setup.sink.kind)
        writer = writer_of(setup.sink)
        notes.ok("installed", f"the writer {writer.__name__} and its packages are installed")
    if notes.has_errors:
        return notes.findings
    state = _table(notes, setup, writer)
    _columns(notes, setup, hook, state)
    _store(notes, setup, writer)
    return notes.findings


def _table(notes: Notes, setup: Setup, writer: Any) -> TableState | Unseen | None:
    state: TableState | Unseen | None = None
    with _reaching(notes, "table", setup):
        state = writer.read_state(setup.sink)
        if state is None and writer.lacks_catalog(setup.sink):
            notes.ok("table", f"the catalog of {setup.sink} is not there yet, and the first read makes it")
        else:
            judge_state(notes, setup, state)
        if why := writer.why_catalog_is_read_only(setup.sink):
            notes.error("catalog", f"the catalog of {setup.sink} cannot be changed: {why}", _GRANT_CATALOG)
    return state


@contextmanager
def _reaching(notes: Notes, check: str, setup: Setup) -> Iterator[None]:
    """As `Notes.failing`, for what asks a catalog or a store; the next step depends on what was asked."""
    try:
        yield
    except TableOwnedByOther as error:
        notes.error(check, str(error), _OTHER_TABLE)
    except StreamsError as error:
        has_connection = getattr(setup.sink, "conn_id", None) is not None
        notes.error(check, str(error), _REACH if has_connection else _CORRECT)


def judge_state(notes: Notes, setup: Setup, state: TableState | Unseen | None) -> None:
    """Whether a reader of the source may land there. Pure."""
    if state == "unseen":
        notes.skipped("table", "such a table can be seen only by Spark", _ONLY_SPARK)
    elif state is None:
        says = "has neither owner nor rows: its catalog or store answers, and the first read makes it or takes it over"
        notes.ok("table", f"{setup.sink} {says}")
    elif _is_ours(setup, state.mark):
        says = f"{setup.sink} is of {state.mark}, and holds {counted(len(state.windows), 'window')}"
        if setup.source is None or setup.reader or state.mark.reader == DEFAULT_READER:
            notes.ok("table", says)
        else:
            notes.warning("table", f"{says}: no other reader can land there", _NAME_READER)
    else:
        notes.error(
            "table",
            f"{setup.sink} is of {state.mark}",
            f"{_OTHER_TABLE}, or read as that reader: a table has one owner",
        )


def _is_ours(setup: Setup, mark: TableMark) -> bool:
    other_source = setup.source is not None and setup.source.key != mark.source
    return not other_source and setup.reader in (None, mark.reader)


def _columns(notes: Notes, setup: Setup, hook: StreamHook | None, state: TableState | Unseen | None) -> None:
    if setup.source is None or hook is None:
        notes.skipped("columns", "no topic or stream was named, or it could not be asked")
        return
    if notes.failed("table") or state == "unseen":
        notes.skipped("columns", "the table could not be looked at")
        return
    if setup.decoding_unknown:
        notes.skipped("columns", "it is not said how values are decoded, and no reader's windows do", _SAY_HOW)
        return
    if setup.transform is not None:
        notes.skipped("columns", f"only a read knows the columns of the transform {setup.transform}")
        return
    reader = setup.reader or "doctor"
    mark = state.mark if isinstance(state, TableState) else TableMark("", setup.source.key, reader)
    advice = "Change the sink (widen=True adds columns), the table, or value, so that they agree"
    with notes.failing("columns", advice), closing(hook.system()) as system:
        check_rows(system, planned(setup, system), Landing(setup.sink, None, setup.columns), TableTerms(mark))
        notes.ok("columns", "the table takes the rows of this source")


def _store(notes: Notes, setup: Setup, writer: Any) -> None:
    if notes.failed("table"):
        notes.skipped("store", "the table could not be looked at")
        return
    with _reaching(notes, "store", setup):
        storage = writer.storage(setup.sink)
        if storage is None:
            _unknown_place(notes, setup)
            return
        _free_space(notes, storage)
        _write(notes, setup, storage)


def _unknown_place(notes: Notes, setup: Setup) -> None:
    where = "only Spark" if isinstance(setup.sink, TableSink) else "the catalog's server, once the table is made,"
    unseen = "; so neither its free space was looked at, nor a file written" if setup.write else ""
    notes.skipped(
        "store", f"{where} knows where the table's files are{unseen}", "Read one window, and see whether it lands"
    )


def _free_space(notes: Notes, storage: Storage) -> None:
    from airflow_provider_streams.lake.write_probe import free_bytes  # noqa: PLC0415 - Arrow when used

    free = free_bytes(storage)
    if free is not None:
        _SPACE.judge(notes, storage.root, free)


def _write(notes: Notes, setup: Setup, storage: Storage) -> None:
    from airflow_provider_streams.lake.write_probe import why_read_only, write_probe  # noqa: PLC0415 - Arrow when used

    if why := why_read_only(storage):
        notes.error("write", why, _GRANT_FOLDER)
        return
    if not setup.write:
        notes.skipped("write", "no file was written: write=True was not given")
        return
    try:
        name = write_probe(storage)
    except StorageFull as error:
        notes.error("write", f"the disk or store is full: {error}", _FREE)
    except TableUnavailable as error:
        notes.error("write", str(error), "Check that the store answers, and try again")
    except StreamsError as error:
        notes.error("write", str(error), "Give the user the right to write, read, list and delete there")
    else:
        notes.ok("write", f"{storage.root} took a file {name}, gave it back, and removed it")
