"""Tasks that write the rows they read into data files of the table: only facts and receipts cross into Spark.

They use no Data Source: planning one starts Python processes, and a task returns only a few lines of text.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.lake.data_files import VIEWS, DataFile, FileTarget, WindowFiles
from airflow_provider_streams.model.plan.receipt import SplitReceipt
from airflow_provider_streams.spark.datasource.option_redaction import mask_secret, unmask_secret
from airflow_provider_streams.spark.datasource.read_options import SplitReadOptions
from airflow_provider_streams.spark.datasource.task_splits import TaskSystem, WindowSplit, shares_of
from airflow_provider_streams.spark.error_transport import one_line
from airflow_provider_streams.systems.base import StreamSystem, ZeroCopyReader

if TYPE_CHECKING:
    from pyspark import Accumulator

    from airflow_provider_streams.spark.job.job_spec import WindowSpec


@dataclass
class Staged:
    """What became of one window's rows: its splits' receipts, and the files that hold them."""

    receipts: list[SplitReceipt] = field(default_factory=list)
    files: list[DataFile] = field(default_factory=list)
    handed: int | None = None
    """How many rows a writer of DataFrames got; None: Spark did not count them."""

    @property
    def rows(self) -> int:
        """How many the files hold."""
        return sum(file.rows for file in self.files)

    def add(self, told: Mapping[str, Any]) -> None:
        """Add what a task reported of the window, see `report`."""
        self.receipts += [SplitReceipt.from_json(one) for one in told["receipts"]]
        self.files += [DataFile.from_json(one) for one in told["files"]]


def report(number: int, receipts: Sequence[SplitReceipt], files: Sequence[DataFile]) -> str:
    """A task's report on one window."""
    told = {"receipts": [one.to_json() for one in receipts], "files": [one.to_json() for one in files]}
    return json.dumps({"window": number, **told})


@dataclass(frozen=True)
class SplitTasks:
    """What all tasks together read and write; each gets the number of its share."""

    system: TaskSystem
    split_read_options: SplitReadOptions
    shares: Sequence[tuple[WindowSplit, ...]]
    targets: Mapping[int, str] = field(repr=False)
    """Where each window's files go, by its number; masked."""
    events: Accumulator[int] | None = None
    """What events are added to as they are read; None: nothing counts them before the end."""

    @classmethod
    def of(
        cls,
        specs: Sequence[WindowSpec],
        targets: Mapping[int, FileTarget],
        events: Accumulator[int] | None = None,
    ) -> SplitTasks:
        """For the windows of a job, and where their files go, by number."""
        how = specs[0]
        return cls(
            TaskSystem.of(how.plan.source.system, how.options),
            how.split_read_options,
            shares_of((spec.plan, spec.quarantine) for spec in specs),
            {number: mask_secret(target.to_json()) for number, target in targets.items()},
            events,
        )

    def __call__(self, number: int) -> list[str]:
        """In a task: one report per window of the share of this number."""
        try:
            return self._land(self.shares[number])
        except StreamsError as error:
            raise one_line(error) from None  # Spark shows this line as the error's place

    def _land(self, share: Sequence[WindowSplit]) -> list[str]:
        receipts: dict[int, list[SplitReceipt]] = defaultdict(list)
        with ExitStack() as stack:
            system = stack.enter_context(self.system.opened())
            files = {
                number: stack.enter_context(closing(self._files_of(number)))
                for number in dict.fromkeys(part.number for part in share)
            }
            for part in share:
                receipts[part.number].append(self._land_split(system, part, files[part.number]))
            return [report(number, receipts[number], one.finish()) for number, one in files.items()]

    def _files_of(self, number: int) -> WindowFiles:
        return WindowFiles(FileTarget.from_json(unmask_secret(self.targets[number])))

    def _land_split(self, system: StreamSystem, part: WindowSplit, files: WindowFiles) -> SplitReceipt:
        with closing(part.reader(system, self.split_read_options)) as reader:
            if VIEWS and isinstance(reader, ZeroCopyReader):
                reader.lend()
            for batch in reader:
                files.write(batch)
                if self.events is not None:
                    self.events.add(len(batch))
            return replace(reader.receipt, index=part.split.index)
