"""What Spark's tasks read, for Data Sources and jobs alike: a system that opens where a task runs, and its splits."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

from airflow_provider_streams.model.bin_packing import packed
from airflow_provider_streams.model.plan.plan import Plan, Split
from airflow_provider_streams.spark.datasource.option_redaction import mask_secret, unmask_secret
from airflow_provider_streams.spark.datasource.read_options import SplitReadOptions
from airflow_provider_streams.spark.datasource.split_reading import open_split
from airflow_provider_streams.spark.datasource.worker_memory import keep_imports
from airflow_provider_streams.systems.base import SplitReader, StreamSystem
from airflow_provider_streams.systems.registry import load_system, path_of, register

TASK_BYTES: Final = 8 * 1024 * 1024
"""One task reads splits of up to so many stored bytes."""


@dataclass(frozen=True)
class TaskSystem:
    """A stream system that tasks open. It carries its declaration, for their processes may not have registered it."""

    name: str
    declaration: str
    options: str = field(repr=False)
    """As masked JSON."""

    @classmethod
    def of(cls, name: str, options: Mapping[str, str]) -> TaskSystem:
        """The system of a name, with its options."""
        return cls(name, path_of(name), mask_secret(json.dumps(dict(options))))

    @contextmanager
    def opened(self) -> Iterator[StreamSystem]:
        """The connected system, in a task."""
        register(self.name, self.declaration)
        system = load_system(self.name)
        keep_imports()
        with closing(system.from_options(json.loads(unmask_secret(self.options)))) as connected:
            yield connected


@dataclass(frozen=True)
class WindowSplit:
    """One split of one window, with its plan."""

    number: int
    """Of the window in its job."""
    plan: Plan
    """Of this split alone, as its number 0."""
    split: Split
    quarantine: str | None

    def reader(self, system: StreamSystem, how: SplitReadOptions) -> SplitReader:
        """See `open_split`."""
        return open_split(system, self.plan, self.plan.splits[0], replace(how, quarantine=self.quarantine))


def shares_of(windows: Iterable[tuple[Plan, str | None]]) -> list[tuple[WindowSplit, ...]]:
    """The splits of plans, each with its quarantine folder, by task.

    They are in the windows' order. One task reads several small ones: to start it costs as much as some megabytes.
    """
    splits = (
        WindowSplit(number, one_split(plan, split), split, quarantine)
        for number, (plan, quarantine) in enumerate(windows)
        for split in plan.splits
    )
    return [tuple(share) for share in packed(splits, lambda one: one.split.bytes, TASK_BYTES)]


def one_split(plan: Plan, split: Split) -> Plan:
    """The plan of one split alone, renumbered to 0."""
    losses = tuple(loss for loss in plan.losses if loss.shard == split.shard)
    return replace(plan, splits=(replace(split, index=0),), ranges=(), losses=losses)
