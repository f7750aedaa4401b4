"""Tasks that write what they read: data files beside the table, and only their facts and receipts cross into Spark.

No Data Source: planning one starts Python processes of its own, and what comes back here is a few lines of text.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.lake.files import VIEWS, DataFile, FileTarget, WindowFiles
from airflow_provider_streams.model.packing import packed
from airflow_provider_streams.model.receipt import SplitReceipt
from airflow_provider_streams.spark.failures import one_line
from airflow_provider_streams.spark.manner import Manner
from airflow_provider_streams.spark.source import one_split
from airflow_provider_streams.spark.split_reading import open_split
from airflow_provider_streams.spark.veil import unveiled, veiled
from airflow_provider_streams.spark.windows_source import TASK_BYTES, WindowSplit
from airflow_provider_streams.spark.worker_memory import keep_imports
from airflow_provider_streams.systems.base import Lending, StreamSystem
from airflow_provider_streams.systems.registry import load_system, path_of, register

if TYPE_CHECKING:
    from airflow_provider_streams.spark.spec import JobSpec


@dataclass
class Staged:
    """What became of one window's rows: its splits' receipts, and the files that hold them."""

    receipts: list[SplitReceipt] = field(default_factory=list)
    files: list[DataFile] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """How many the files hold."""
        return sum(file.rows for file in self.files)

    def add(self, told: Mapping[str, Any]) -> None:
        """What a task said of it, see `report`."""
        self.receipts += [SplitReceipt.from_json(one) for one in told["receipts"]]
        self.files += [DataFile.from_json(one) for one in told["files"]]


def report(number: int, receipts: Sequence[SplitReceipt], files: Sequence[DataFile]) -> str:
    """What a task says of one window."""
    told = {"receipts": [one.to_json() for one in receipts], "files": [one.to_json() for one in files]}
    return json.dumps({"window": number, **told})


@dataclass(frozen=True)
class SplitTasks:
    """What all tasks together read and write; each is given the number of its share."""

    system: str
    declaration: str
    """Where the system is declared: a task's process has not heard of it."""
    options: str = field(repr=False)
    """The system's, as veiled JSON."""
    manner: Manner
    shares: tuple[tuple[WindowSplit, ...], ...]
    targets: Mapping[int, str] = field(repr=False)
    """Where each window's files go, by its number; veiled."""

    @classmethod
    def of(cls, specs: Sequence[JobSpec], targets: Mapping[int, FileTarget]) -> SplitTasks:
        """Splits in order of the windows, small ones together: a task costs as much as reading some megabytes."""
        how = specs[0]
        splits = (
            WindowSplit(number, one_split(spec.plan, split), split, spec.quarantine)
            for number, spec in enumerate(specs)
            for split in spec.plan.splits
        )
        system = how.plan.source.system
        return cls(
            system,
            path_of(system),
            veiled(json.dumps(dict(how.options))),
            how.manner,
            tuple(tuple(share) for share in packed(splits, lambda one: one.split.bytes, TASK_BYTES)),
            {number: veiled(target.to_json()) for number, target in targets.items()},
        )

    def __call__(self, number: int) -> list[str]:
        """In a task: one report per window of the share of this number."""
        try:
            return self._land(self.shares[number])
        except StreamsError as error:
            raise one_line(error) from None  # the last line that runs here: Spark shows it as its place

    def _land(self, share: Sequence[WindowSplit]) -> list[str]:
        register(self.system, self.declaration)
        receipts: dict[int, list[SplitReceipt]] = defaultdict(list)
        with ExitStack() as stack:
            system_type = load_system(self.system)
            keep_imports()
            connected = system_type.from_options(json.loads(unveiled(self.options)))
            system = stack.enter_context(closing(connected))
            files = {
                number: stack.enter_context(closing(self._files_of(number)))
                for number in dict.fromkeys(part.number for part in share)
            }
            for part in share:
                receipts[part.number].append(self._land_split(system, part, files[part.number]))
            return [report(number, receipts[number], one.finish()) for number, one in files.items()]

    def _files_of(self, number: int) -> WindowFiles:
        return WindowFiles(FileTarget.from_json(unveiled(self.targets[number])))

    def _land_split(self, system: StreamSystem, part: WindowSplit, files: WindowFiles) -> SplitReceipt:
        manner = replace(self.manner, quarantine=part.quarantine)
        with closing(open_split(system, part.plan, part.plan.splits[0], manner)) as reader:
            if VIEWS and isinstance(reader, Lending):
                reader.lend()
            for batch in reader:
                files.write(batch)
            return replace(reader.receipt, index=part.split.index)
