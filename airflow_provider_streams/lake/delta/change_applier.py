"""Changes applied to a Delta table by delta-rs: copy-on-write of the files whose keys change, in one commit.

    <table>/<attempt>-*.parquet     rows, each file sorted by key, of a range of the first key
    <table>/_markers/               see `lake.changes.marker_files`

The partition column `_key_range` is the least key of a file's range, as hexadecimal digits that sort like the keys. So
a commit can remove exactly the files that were written again, and the log says where each key is. The commit names the
list of markers as the version of the application `streams.markers`, and bears the window's mark.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as changed
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.changes.change_applier import AttemptFiles, ChangeApplier
from airflow_provider_streams.lake.changes.copy_on_write import KeyRange, Merging, Rewrite, low_of
from airflow_provider_streams.lake.changes.landed_changes import (
    ChangeWindow,
    columns_and_start,
    columns_of,
    is_known,
    new_table,
    rules_json,
    start_type,
    without_unknown,
    without_versions,
)
from airflow_provider_streams.lake.changes.latest_and_history import Application, application_for, as_schema
from airflow_provider_streams.lake.changes.marker_files import MarkerFiles, MarkerList, read_list
from airflow_provider_streams.lake.changes.states.change_states import Rules
from airflow_provider_streams.lake.columns import promoted
from airflow_provider_streams.lake.data_files import DataFile, FileTarget, write_files
from airflow_provider_streams.lake.delta.add_actions import file_stats, stored
from airflow_provider_streams.lake.delta.column_types import columns_of_rows, columns_to_add
from airflow_provider_streams.lake.delta.storage import check_free, storage_of
from airflow_provider_streams.lake.delta.table_settings import codec_of
from airflow_provider_streams.lake.delta.table_version import DeltaVersion
from airflow_provider_streams.lake.delta.transaction_log import load, make, versions
from airflow_provider_streams.lake.table_properties import check_owner, commit_facts
from airflow_provider_streams.model.sinks.sink import DeltaSink

if TYPE_CHECKING:
    from deltalake.transaction import AddAction

    from airflow_provider_streams.lake.storage import Storage

MARKERS: Final = "streams.markers"
"""An application of the log: its version is the number of the list of markers."""
KEY_RANGE: Final = "_key_range"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class DeltaChangeApplier(ChangeApplier[DeltaSink]):
    """See `ChangeApplier`."""

    @property
    def table_name(self) -> str:
        """See `ChangeApplier`."""
        return self.sink.path

    def open(self, columns: pa.Schema) -> Storage:
        """See `ChangeApplier`."""
        storage = storage_of(self.sink)
        version = next(self._versions(storage, self._first(columns)))
        if self._is_claimed(version) or version.mark is None:
            self.check(version, columns)
        return storage

    def _first(self, rows: pa.Schema) -> pa.Schema:
        columns = columns_of_rows(self.sink.path, new_table(rows, self.rules))
        return pa.schema([*columns, pa.field(KEY_RANGE, pa.string())])

    def check(self, version: DeltaVersion, columns: pa.Schema) -> None:
        """Check that rows of these columns may be applied to this reader's table, which holds what it holds.

        Raises:
            SinkError: they may not.
        """
        self._check_writable(version)
        if is_known(columns, self.rules):
            own = columns_of(columns.empty_table(), self.rules)
            self._columns_to_add(version, columns_of_rows(self.sink.path, own))

    def apply_in_order(self, window: ChangeWindow, changes: Sequence[pa.Table]) -> None:
        """See `ChangeApplier`."""
        columns, start = columns_and_start(changes, self.rules)
        columns = columns_of_rows(self.sink.path, columns)
        storage = storage_of(self.sink)
        first = _with_range(application_for(self.rules, columns, start))
        for version in self._versions(storage, first):
            if not self._is_claimed(version) or self._is_to_be_begun(version, columns):
                if version.mark is None:
                    self._columns_to_add(version, columns)  # a table that is refused stays as it was
                self._take_over(version, first)
                continue
            held = columns_of_rows(self.sink.path, _own_columns(version, self.rules))
            new = self._columns_to_add(version, columns)
            every = pa.schema({one.name: one for one in (*held, *new)}.values())
            grown = application_for(self.rules, every, start_type(version.columns, start))
            if not version.may_have(grown.row_schema):
                version.allow_local_times()
                continue
            if _Attempt(self, window, storage, version, grown, new).run(changes):
                return
            _log.info("%s: another commit came first, merging %s again", self.sink.path, window.window)

    def _columns_to_add(self, version: DeltaVersion, columns: pa.Schema) -> pa.Schema:
        """What the table must get before changes of these columns are applied to it; `SinkError`: it must not."""
        held = columns_of_rows(self.sink.path, _own_columns(version, self.rules))
        new = columns_to_add(self.sink.path, held, columns, widen=self.sink.widen or _is_bare(version, self.rules))
        if wider := promoted(held, new):
            raise SinkError(
                self.sink.path,
                f"the changes have wider numbers in {', '.join(wider)}, for which all files of the table would "
                "have to be rewritten: use full_refresh=True",
            )
        return new

    def _versions(self, storage: Storage, columns: pa.Schema) -> Iterator[DeltaVersion]:
        """The newest version of the table, again and again; at first it is made, if there is none."""
        found = load(storage)
        if found is None:
            check_free(storage)
            make(storage, columns, self.terms.mark, [KEY_RANGE])
        return versions(storage, found)

    def _is_to_be_begun(self, version: DeltaVersion, columns: pa.Schema) -> bool:
        """Whether the table was made before the columns of changes were known, and they are known now."""
        return len(columns) > 0 and _is_bare(version, self.rules)

    def _is_claimed(self, version: DeltaVersion) -> bool:
        """Whether the table bears our mark. False: it may be taken over.

        Raises:
            TableOwnedByOther: it may not.
            SinkError: it cannot be changed by key.
        """
        self._check_writable(version)
        if version.mark is None and version.is_empty:
            return False
        return check_owner(self.sink.path, version.mark, self.terms, "earlier versions of the table")

    def _take_over(self, version: DeltaVersion, columns: pa.Schema) -> None:
        """One step towards a table of ours: what was applied under an earlier mark goes first, then the mark."""
        if version.mark is None or version.is_bare(columns):
            version.claim(self.terms.mark)
        elif not version.may_have(columns):
            version.allow_local_times()
        elif version.begin(columns, partition_by=[KEY_RANGE]):
            _log.info("%s: what was applied before is in its version %d", self.sink.path, version.number)

    def _check_writable(self, version: DeltaVersion) -> None:
        if hindrance := version.change_hindrance(KEY_RANGE):
            raise SinkError(
                self.sink.path, f"changes cannot be applied to the table: {hindrance}. Apply them to another table"
            )


@dataclass
class _Attempt:
    """One merge on exactly one version of a table."""

    applier: DeltaChangeApplier
    window: ChangeWindow
    storage: Storage
    version: DeltaVersion
    application: Application[Any]
    new: pa.Schema
    name: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __post_init__(self) -> None:
        self._markers = MarkerFiles(
            self.storage, list_of(self.storage, self.version).with_rules(rules_json(self.applier.rules))
        )
        codec = codec_of(self.version.properties)
        self._target = FileTarget(self.storage, "", f"{self.name}-", self.application.row_schema, compression=codec)

    def run(self, changes: Sequence[pa.Table]) -> bool:
        """Merge and commit. False: another commit came first, and nothing was changed."""
        becomes = self.applier.becomes(self._markers.list, self.window, changes)
        state = self.application.state(changes)
        merging = Merging(self.application, self._ranges(), self._read, self._markers, self.applier.range_bytes)
        old: list[str] = []
        new: list[AddAction] = []
        with AttemptFiles(target=self._target) as files:
            for one in merging.rewrites(state) if state is not None else ():
                if one.old and one.low is not None:
                    old.append(_digits(one.low))
                new += self._written(one)
            markers = merging.list_of_markers(self.window.holes, self.window.resent_from)
            number = self._markers.write_list(changed(becomes, files=markers.files))
            facts = commit_facts(self.window.window, self.window.fingerprint, self.name)
            with files.committing():
                files.may_be_landed = self.version.replace_partitions(
                    KEY_RANGE, old, files=new, add=self.new, facts=facts, applications={MARKERS: number}
                )
            return files.may_be_landed

    def _written(self, rewrite: Rewrite[DataFile]) -> list[AddAction]:
        """The log's entries for the new files of a range. The first one takes over the range's least key."""
        from deltalake.transaction import AddAction  # noqa: PLC0415 - optional

        actions = []
        key = self.applier.rules.keys[0]
        for number, chunk in enumerate(rewrite.chunks):
            low = low_of(chunk, key)
            if number == 0 and rewrite.low is not None:
                low = min(low, rewrite.low, key=str.encode)
            partition = _digits(low)
            files = [one for one in write_files(self._target, chunk.to_batches()) if one.rows]
            for file, footer in stored(self.storage, files):
                actions.append(
                    AddAction(
                        path=file.path,
                        size=file.bytes,
                        partition_values={KEY_RANGE: partition},
                        modification_time=int(time.time() * 1000),
                        data_change=True,
                        stats=file_stats(footer, self.application.row_schema),
                    )
                )
        return actions

    def _ranges(self) -> list[KeyRange[DataFile]]:
        found: dict[str, list[DataFile]] = {}
        for partition, file in self.version.files_by_partition(KEY_RANGE):
            found.setdefault(_text(partition or ""), []).append(file)
        return [KeyRange(low, tuple(found[low])) for low in sorted(found, key=str.encode)]

    def _read(self, files: Sequence[DataFile]) -> pa.Table:
        system, root = self.storage.open()
        found = []
        for file in files:
            with self.storage.errors(f"{file.path} cannot be read"):
                rows: Any = pq.read_table(f"{root}/{file.path}", filesystem=system, partitioning=None)
                found.append(as_schema(rows, self.application.row_schema))
        return pa.concat_tables(found)


def list_of(storage: Storage, version: DeltaVersion) -> MarkerList:
    """The list of markers that a version of a table names; an empty one if it names none of its mark.

    Raises:
        SinkError: it cannot be read; or the version is a restored one, whose log names the markers of a later one.
    """
    if version.is_restored:
        raise SinkError(
            storage.root,
            "another program restored an earlier version of the table, without the deletes that it had: apply all "
            "changes again with full_refresh=True, or restore the version before that",
        )
    number = version.application_version(MARKERS)
    return read_list(storage, number, version.mark.id if version.mark is not None else "")


def _with_range(application: Application[Any]) -> pa.Schema:
    return pa.schema([*without_unknown(application.row_schema), pa.field(KEY_RANGE, pa.string())])


def _is_bare(version: DeltaVersion, rules: Rules) -> bool:
    return version.is_empty and not len(_own_columns(version, rules))


def _own_columns(version: DeltaVersion, rules: Rules) -> pa.Schema:
    return without_versions(pa.schema([one for one in version.columns if one.name != KEY_RANGE]), rules)


def _digits(low: str) -> str:
    """A least key as a folder's name, which sorts like it. That of no key is not empty, which would be null."""
    return low.encode().hex() or "0"


def _text(digits: str) -> str:
    return "" if digits in ("", "0") else bytes.fromhex(digits).decode()
