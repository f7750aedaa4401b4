"""The Data Source of jobs: the splits of one or many plans in one scan, each row marked with its window's number."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.model.packing import packed
from airflow_provider_streams.model.plan import Plan, Split
from airflow_provider_streams.spark.blocks import Blocks
from airflow_provider_streams.spark.columns import Columns
from airflow_provider_streams.spark.failures import one_line
from airflow_provider_streams.spark.source import one_split
from airflow_provider_streams.spark.spec import JobSpec, secret_variable
from airflow_provider_streams.spark.split_reading import open_split
from airflow_provider_streams.spark.veil import unveiled, veiled
from airflow_provider_streams.spark.worker_memory import keep_imports
from airflow_provider_streams.systems.base import StreamSystem
from airflow_provider_streams.systems.registry import declaration_of, load_system, path_of, register

NUMBER_COLUMN = "_window"
"""Which window of the chunk a row belongs to, from 0."""
_NUMBER = pa.field(NUMBER_COLUMN, pa.int32())

TASK_BYTES = 8 * 1024 * 1024
"""Splits of at most so many stored bytes are read by one task."""

_SPEC = "spec"


def source_options(specs: tuple[JobSpec, ...]) -> dict[str, str]:
    """What the source is told; secrets are options of their own, veiled."""
    specs = tuple(replace(spec, table={}) for spec in specs)  # tasks write where they are told, and ask no catalog
    lists = {"plans": [spec.plan.to_json() for spec in specs], "quarantines": [spec.quarantine for spec in specs]}
    chunk = {**specs[0].to_json(), **lists}
    secrets = {name: veiled(value) for name, value in specs[0].secret_environment().items()}
    return {_SPEC: json.dumps(chunk, separators=(",", ":")), **secrets}


class WindowsDataSource(DataSource):
    """Reads plans. For this package's own jobs: users read one plan with their system's format."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        given = {name.lower(): value for name, value in options.items()}
        data = json.loads(given[_SPEC])
        environment = {
            secret_variable(name): unveiled(given[secret_variable(name).lower()]) for name in data["secrets"]
        }
        plans, quarantines = [Plan.from_json(plan) for plan in data.pop("plans")], data.pop("quarantines")
        spec = JobSpec.from_json(data, environment)
        system = load_system(spec.plan.source.system)
        spec = replace(spec, plan=replace(spec.plan, splits=(), ranges=()))
        self._reading = _Reading(plans, quarantines, system, spec, blocks_of(spec), path_of(system.name))
        keep_imports()

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "streams_windows"

    def schema(self) -> StructType:
        """Blocks of rows with the asked columns and the window's number; and receipts."""
        return from_arrow_schema(self._reading.blocks.schema)

    def reader(self, schema: StructType) -> WindowsReader:  # noqa: ARG002 - its own
        """A reader of all plans."""
        return WindowsReader(self._reading)


@dataclass(frozen=True)
class WindowSplit:
    """One split of one window, with its plan."""

    number: int
    plan: Plan
    split: Split
    quarantine: str | None


@dataclass(frozen=True)
class WindowPartition(InputPartition):
    """What one task reads."""

    parts: tuple[WindowSplit, ...]


@dataclass(frozen=True)
class _Reading:
    plans: list[Plan]
    quarantines: list[str | None]
    system: type[StreamSystem]
    spec: JobSpec
    blocks: Blocks
    declaration: str
    """Where the system is declared: a task's process has not heard of it."""


class WindowsReader(DataSourceReader):
    """Spreads the splits of all plans over tasks; a task reads one."""

    def __init__(self, reading: _Reading) -> None:
        self._reading = reading

    def __getstate__(self) -> dict[str, object]:
        """A task has its own plan in its partition: the others are not sent with it."""
        return {"_reading": replace(self._reading, plans=[], quarantines=[])}

    def partitions(self) -> list[WindowPartition]:
        """Splits in order of the windows, small ones together: a task costs as much as reading some megabytes."""
        keep_imports()
        splits = (
            WindowSplit(number, one_split(plan, split), split, folder)
            for number, (plan, folder) in enumerate(zip(self._reading.plans, self._reading.quarantines, strict=True))
            for split in plan.splits
        )
        tasks = packed(splits, lambda one: one.split.bytes, TASK_BYTES)
        return [WindowPartition(tuple(parts)) for parts in tasks]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """The batches of each split, as blocks; after them its receipt, as a row."""
        # Spark makes a partition of nothing out of an empty list: None, or an `InputPartition` (4.2)
        if isinstance(partition, WindowPartition):
            try:
                yield from self._read(partition.parts)
            except StreamsError as error:
                raise one_line(error) from None  # the last line that runs here: Spark shows it as the error's place

    def _read(self, parts: Iterable[WindowSplit]) -> Iterator[pa.RecordBatch]:
        register(self._reading.system.name, self._reading.declaration)
        keep_imports()
        with closing(self._reading.system.from_options(self._reading.spec.options)) as system:
            for part in parts:
                yield from self._read_split(system, part)

    def _read_split(self, system: StreamSystem, part: WindowSplit) -> Iterator[pa.RecordBatch]:
        blocks = self._reading.blocks
        manner = replace(self._reading.spec.manner, quarantine=part.quarantine)
        number = pa.array([part.number], _NUMBER.type)
        reader = open_split(system, part.plan, part.plan.splits[0], manner)
        try:
            for batch in reader:
                if len(batch):
                    yield blocks.block([*batch.columns, number])
            receipt = replace(reader.receipt, index=part.split.index)
        finally:
            reader.close()
        yield blocks.receipt(json.dumps({"window": part.number, "receipt": receipt.to_json()}))


def blocks_of(spec: JobSpec) -> Blocks:
    """How the rows of a chunk cross into Spark, by any of its specs."""
    name = spec.plan.source.system
    with closing(load_system(name).from_options(spec.options)) as system:
        columns = Columns.of(system, spec.plan.decoding, spec.columns)
    of_shard = columns.places_of(declaration_of(name).shard_columns)
    return Blocks(columns.schema.append(_NUMBER), frozenset({*of_shard, len(columns.schema)}))
