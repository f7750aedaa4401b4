"""Logs how far the reads of a job are: by this process as it reads, by Spark as its tasks end.

| read by | what is known meanwhile |
|---|---|
| this process | events, and splits that are read |
| tasks of a Spark in this process, or of spark-submit | tasks that ended, and the events of those that write files |
| tasks of a Spark Connect server | tasks that ended |
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeAlias

from airflow_provider_streams.model.read_progress import PROGRESS_SECONDS, Pace, ReadProgress

if TYPE_CHECKING:
    from pyspark import Accumulator
    from pyspark.sql import SparkSession

    from airflow_provider_streams.spark.datasource.task_splits import WindowSplit

_log = logging.getLogger(__name__)

_Stage: TypeAlias = tuple[int, int, int]
"""Its number, its tasks, and how many of them have ended."""


class SplitProgress:
    """Of splits that this process reads, in several threads.

    Args:
        sizes: stored bytes of all splits.
        pace: when lines are due.
    """

    def __init__(self, sizes: Iterable[int], pace: Pace | None = None) -> None:
        known = list(sizes)
        self._parts, self._all_stored = len(known), sum(known)
        self._pace, self._lock = pace or Pace(), threading.Lock()
        self._done = self._stored = self._events = 0

    def read(self, events: int) -> None:
        """So many events more were read."""
        with self._lock:
            self._events += events
        self._log()

    def end_split(self, stored: int) -> None:
        """A split of so many stored bytes was read."""
        with self._lock:
            self._done += 1
            self._stored += stored

    def _log(self) -> None:
        if self._pace.is_due():
            now = ReadProgress(
                self._done, self._parts, "split", self._stored, self._all_stored, self._pace.seconds, self._events
            )
            _log.info("%s", now)


class TaskProgress:
    """Of splits that Spark's tasks read.

    Args:
        shares: what each task reads.
        events: how many events the tasks that ended have read; None: it is not known.
        pace: when lines are due.
    """

    def __init__(
        self,
        shares: Sequence[Sequence[WindowSplit]],
        events: Callable[[], int] | None = None,
        pace: Pace | None = None,
    ) -> None:
        sizes = (sum(part.split.bytes for part in share) for share in shares)
        self._stored = list(accumulate(sizes, initial=0))
        self._events, self._pace = events, pace or Pace()
        self._stage: int | None = None

    @property
    def tasks(self) -> int:
        """How many there are."""
        return len(self._stored) - 1

    def saw(self, stages: Iterable[_Stage]) -> None:
        """These stages run.

        The first one with as many tasks as this read counts. Later ones belong to a transform that shuffles the rows,
        or that reads them twice.
        """
        for stage, tasks, ended in sorted(stages):
            if self._stage is None and tasks == self.tasks:
                self._stage = stage
            if stage == self._stage:
                self.ended(ended)

    def ended(self, tasks: int) -> None:
        """So many tasks have ended; they begin in order, so these are mostly the first ones."""
        if tasks < self.tasks and self._pace.is_due():
            stored, events = self._stored[tasks], self._events() if self._events else None
            now = ReadProgress(tasks, self.tasks, "task", stored, self._stored[-1], self._pace.seconds, events)
            _log.info("%s", now)


def event_counter(spark: SparkSession) -> Accumulator[int] | None:
    """What tasks add their events to; None: this Spark has nothing like that (Connect)."""
    return None if is_remote(spark) else spark.sparkContext.accumulator(0)


def is_remote(spark: SparkSession) -> bool:
    """Whether the session is one of Spark Connect."""
    return hasattr(spark, "registerProgressHandler") and type(spark).__module__.startswith("pyspark.sql.connect")


@contextmanager
def watched(spark: SparkSession, progress: TaskProgress, every: float = PROGRESS_SECONDS) -> Iterator[None]:
    """Meanwhile, log how many of the tasks have ended.

    Args:
        spark: the session that runs them.
        progress: what to log.
        every: seconds between two looks at what its tasks have done.
    """
    with _stages_told_by_server(spark) if is_remote(spark) else nullcontext(partial(_stages_that_run, spark)) as stages:
        over = threading.Event()

        def ask() -> None:
            while not over.wait(every):
                with suppress(Exception):  # a Spark that ends; a line less is no failure
                    progress.saw(stages())

        asking = threading.Thread(target=ask, name="streams-progress", daemon=True)
        asking.start()
        try:
            yield
        finally:
            over.set()


def _stages_that_run(spark: SparkSession) -> list[_Stage]:
    tracker = spark.sparkContext.statusTracker()
    stages = filter(None, map(tracker.getStageInfo, tracker.getActiveStageIds()))
    return [(stage.stageId, stage.numTasks, stage.numCompletedTasks) for stage in stages]


@contextmanager
def _stages_told_by_server(spark: Any) -> Iterator[Callable[[], list[_Stage]]]:
    """What the server said last: it only speaks when a task or a stage begins or ends."""
    last: list[_Stage] = []

    def note(stages: Iterable[Any] | None, **_: Any) -> None:
        last[:] = [(stage.stage_id, stage.num_tasks, stage.num_completed_tasks) for stage in stages or ()]

    spark.registerProgressHandler(note)
    try:
        yield lambda: last
    finally:
        spark.removeProgressHandler(note)
