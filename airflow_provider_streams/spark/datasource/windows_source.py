"""The Data Source of jobs: the splits of one or many plans in one scan, each row with its window's number."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.model.plan.plan import Plan
from airflow_provider_streams.spark.datasource.columns import Columns
from airflow_provider_streams.spark.datasource.option_redaction import mask_secret, unmask_secret
from airflow_provider_streams.spark.datasource.read_options import SplitReadOptions
from airflow_provider_streams.spark.datasource.row_blocks import Blocks
from airflow_provider_streams.spark.datasource.task_splits import TaskSystem, WindowSplit, shares_of
from airflow_provider_streams.spark.datasource.worker_memory import keep_imports
from airflow_provider_streams.spark.error_transport import one_line
from airflow_provider_streams.spark.job.job_spec import JobSpec, WindowSpec, secret_variable
from airflow_provider_streams.systems.base import StreamSystem
from airflow_provider_streams.systems.registry import declaration_of, load_system

NUMBER_COLUMN = "_window"
"""Which window of the job a row belongs to, from 0."""
_NUMBER = pa.field(NUMBER_COLUMN, pa.int32())

_SPEC = "spec"


def source_options(specs: tuple[WindowSpec, ...]) -> dict[str, str]:
    """The source's options; each secret is an option of its own, masked."""
    specs = tuple(replace(spec, table={}) for spec in specs)  # tasks have their targets, and ask no catalog
    secrets = {name: mask_secret(value) for name, value in specs[0].secret_environment().items()}
    return {_SPEC: json.dumps(JobSpec(specs).to_json(), separators=(",", ":")), **secrets}


class WindowsDataSource(DataSource):
    """Reads plans. For this package's own jobs: users read one plan with their system's format."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        given = {name.lower(): value for name, value in options.items()}
        data = json.loads(given[_SPEC])
        environment = {
            secret_variable(name): unmask_secret(given[secret_variable(name).lower()]) for name in data["secrets"]
        }
        job = JobSpec.from_json(data, environment)
        self._reading = _Reading(
            [(spec.plan, spec.quarantine) for spec in job.specs],
            TaskSystem.of(job.how.plan.source.system, job.how.options),
            job.how.split_read_options,
            blocks_of(job.how),
        )
        keep_imports()

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "streams_windows"

    def schema(self) -> StructType:
        """Blocks of rows with the requested columns and the window's number; and receipts."""
        return from_arrow_schema(self._reading.blocks.schema)

    def reader(self, schema: StructType) -> WindowsReader:  # noqa: ARG002 - its own
        """A reader of all plans."""
        return WindowsReader(self._reading)


@dataclass(frozen=True)
class WindowPartition(InputPartition):
    """What one task reads."""

    parts: tuple[WindowSplit, ...]


@dataclass(frozen=True)
class _Reading:
    windows: Sequence[tuple[Plan, str | None]]
    """Plans with their quarantine folders."""
    system: TaskSystem
    how: SplitReadOptions
    blocks: Blocks


class WindowsReader(DataSourceReader):
    """Spreads the splits of all plans over tasks."""

    def __init__(self, reading: _Reading) -> None:
        self._reading = reading

    def __getstate__(self) -> dict[str, object]:
        """A task has its own plan in its partition: the others are not sent with it."""
        return {"_reading": replace(self._reading, windows=[])}

    def partitions(self) -> list[WindowPartition]:
        """See `shares_of`."""
        keep_imports()
        return [WindowPartition(share) for share in shares_of(self._reading.windows)]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """The batches of each split, as blocks; after them its receipt, as a row."""
        # for an empty list of partitions, Spark calls this once with None, or an `InputPartition` (4.2)
        if isinstance(partition, WindowPartition):
            try:
                with self._reading.system.opened() as system:
                    for part in partition.parts:
                        yield from self._read_split(system, part)
            except StreamsError as error:
                raise one_line(error) from None  # Spark shows this line as the error's place

    def _read_split(self, system: StreamSystem, part: WindowSplit) -> Iterator[pa.RecordBatch]:
        blocks = self._reading.blocks
        number = pa.array([part.number], _NUMBER.type)
        with closing(part.reader(system, self._reading.how)) as reader:
            for batch in reader:
                if len(batch):
                    yield blocks.block([*batch.columns, number])
            receipt = replace(reader.receipt, index=part.split.index)
        yield blocks.receipt(json.dumps({"window": part.number, "receipt": receipt.to_json()}))


def blocks_of(spec: WindowSpec) -> Blocks:
    """How the rows of a job cross into Spark, by any of its specs."""
    name = spec.plan.source.system
    with closing(load_system(name).from_options(spec.options)) as system:
        columns = Columns.of(system, spec.plan.decoding, spec.columns)
    of_shard = columns.places_of(declaration_of(name).shard_columns)
    return Blocks(columns.schema.append(_NUMBER), frozenset({*of_shard, len(columns.schema)}))
