"""The job: plans in, receipts out, inside a Spark program; each window is proven and committed on its own.

| what | how |
|---|---|
| the plans are small together | read and written by this process |
| larger | one scan of the splits of all plans, whose tasks write what they read (`file_writing_tasks`) |
| a transform | sees one window at a time; more rows of several than fit are halved |
| a window that cannot be read | fails alone; windows that fail as a whole are halved until the failure stands alone |
| several tables, each of a source of its own | a failure of one does not fail the others |
"""

from __future__ import annotations

import json
import logging
import traceback
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airflow_provider_streams.errors import (
    AccessError,
    DecodeError,
    LandingMismatch,
    SourceNotFound,
    SourceReplaced,
    StreamsError,
)
from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.lake.connections import connection_of, given
from airflow_provider_streams.lake.registry import may_keep_undecodable, writer_of, writes_files
from airflow_provider_streams.model.circuit_breaker import CircuitBreaker
from airflow_provider_streams.model.sinks.landing import Landed, Schema, grown, new_columns
from airflow_provider_streams.model.sinks.untouched_table import mark_untouched
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.redaction import redact
from airflow_provider_streams.spark import error_transport
from airflow_provider_streams.spark.job import plan_reading
from airflow_provider_streams.spark.job.concurrency import side_by_side
from airflow_provider_streams.spark.job.job_pass import JobPass
from airflow_provider_streams.spark.job.job_spec import JobSpec, WindowSpec, table_of
from airflow_provider_streams.spark.job.open_systems import OpenSystems
from airflow_provider_streams.spark.job.outcomes import WindowFailure, WindowResult, is_fatal_for_all
from airflow_provider_streams.spark.job.transforms import Transform, unchanged
from airflow_provider_streams.spark.launch import preflight
from airflow_provider_streams.spark.session_setting import with_times_of_day

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)

WindowOfTable = tuple[str, Window]
"""A window, by the table that it lands in."""


def run(job: JobSpec, spark: SparkSession) -> list[WindowResult]:
    """Read, prove and commit every window of a job; what became of each, in the job's order.

    Raises:
        PreflightFailed, InvalidRequest, AccessError, SystemUnavailable, SinkError: it concerns all windows. Those that
            were committed before stay so.
    """
    how = job.how
    touched: set[WindowOfTable] = set()
    try:
        times = nullcontext() if how.is_direct else with_times_of_day(spark, (spec.plan.decoding for spec in job.specs))
        with times, given(connection_of(how.sink), how.table), closing(OpenSystems.of(how)) as systems:
            results = _Run(spark, systems, CircuitBreaker(several=job.fans_out), touched).results(job)
    except Exception as error:
        known = error_transport.typed(error, how.hidden)
        if not touched:
            mark_untouched(known)
        if known is error:
            raise
        raise known from None  # Spark's text is pages of traceback, and may quote a secret
    if job.is_single:
        return results
    # an error keeps alive all that its frames hold
    return [replace(one, error=None) if isinstance(one, WindowFailure) else one for one in results]


@dataclass(frozen=True, slots=True)
class _Run:
    """What all passes of a job have in common."""

    spark: SparkSession
    systems: OpenSystems
    circuit_breaker: CircuitBreaker
    touched: set[WindowOfTable]
    """The windows for which the job has begun to change a table."""

    def results(self, job: JobSpec) -> list[WindowResult]:
        """See `run`."""
        results: dict[int, WindowResult] = {**self._of_other_clusters(job)}
        own = [number for number in range(len(job.specs)) if number not in results]
        if own:
            self._prepare(job, own)
        passes = _passes(job, own)
        columns: dict[str, Schema] = {}
        for numbers in passes:
            part = replace(job, specs=tuple(_with_columns(job.specs[number], columns) for number in numbers))
            read = self._attempt(part) if len(passes) == 1 else self._among_others(part)
            results |= zip(numbers, read, strict=True)
            for spec, one in zip(part.specs, read, strict=True):
                if isinstance(one, Landed) and one.schema:
                    columns[table_of(spec)] = one.schema
        return [results[number] for number in range(len(job.specs))]

    def _prepare(self, job: JobSpec, own: list[int]) -> None:
        """Find what is wrong with Spark or with the transform before anything is read."""
        if not job.is_small:
            preflight.check_workers(self.spark)
        if job.transform:
            Transform(job.transform, job.how).rehearse(self.spark, self.systems.schema_of(job.how))
        if job.is_single:
            plan = job.how.plan
            splits, size = counted(len(plan.splits), "split"), counted(plan.estimate.bytes, "byte")
            _log.info("reading %s, about %s, of plan %s", splits, size, plan.fingerprint)
        else:
            _log.info("reading %s in one job", counted(len(own), "window"))

    def _of_other_clusters(self, job: JobSpec) -> dict[int, WindowFailure]:
        """The windows whose plans are of another cluster or incarnation; each source is checked once."""
        first = {spec.plan.source: spec for spec in reversed(job.specs)}
        with side_by_side(self._origin_problem, first.values(), "streams-origin") as asked:
            problems = dict(zip(first, asked, strict=True))
        return {
            number: self._failed(spec, problem)
            for number, spec in enumerate(job.specs)
            if (problem := problems[spec.plan.source]) is not None
        }

    def _origin_problem(self, spec: WindowSpec) -> StreamsError | None:
        try:
            with self.systems.one() as system:
                system.check_origin(spec.plan)
        except SourceReplaced as error:
            return error
        except (AccessError, SourceNotFound) as error:
            if not self.circuit_breaker.several or is_fatal_for_all(error, several_tables=True):
                raise
            return error
        return None

    def _among_others(self, part: JobSpec) -> list[WindowResult]:
        """A pass over windows of one schema among several: if the table cannot take it, only these windows fail."""
        try:
            return self._attempt(part)
        except LandingMismatch as error:
            return [self._failed(spec, error) for spec in part.specs]

    def _attempt(self, part: JobSpec) -> list[WindowResult]:
        if not _can_share(part):
            return self._each_alone(part)
        try:
            return self._one_pass(part)
        except plan_reading.SparkSettingsChanged:
            _log.info("the transform changes Spark's settings: each of %d windows is read alone", len(part.specs))
            return self._each_alone(part)
        except plan_reading.TooLarge:
            _log.info("the rows of %d windows are too many for this process and a transform: halving", len(part.specs))
        except Exception as error:  # noqa: BLE001 - no error may fail the other windows
            known = error_transport.typed(error, part.how.hidden)
            if is_fatal_for_all(known, several_tables=self.circuit_breaker.several):
                raise known from None  # Spark's text is pages of traceback, and may quote a secret
            if part.is_single:
                self.circuit_breaker.note(known)
                return [self._failed(part.how, known)]
            _log.warning("%d windows failed together (%s): halving", len(part.specs), type(known).__name__)
        half = len(part.specs) // 2
        halves = part.part(0, half), part.part(half, len(part.specs))
        return [result for one in halves for result in self._unless_over(one)]

    def _unless_over(self, part: JobSpec) -> list[WindowResult]:
        """Read some of the windows, unless nothing answers any more."""
        if self.circuit_breaker.over:
            return [self._failed(spec, self.circuit_breaker.over) for spec in part.specs]
        return self._attempt(part)

    def _each_alone(self, part: JobSpec) -> list[WindowResult]:
        return [self._unless_over(part.part(n, n + 1))[0] for n in range(len(part.specs))]

    def _one_pass(self, part: JobSpec) -> list[WindowResult]:
        with unchanged(self.spark) if part.transform else nullcontext():
            found = JobPass(part, self.spark, self.systems, self.circuit_breaker, self._touch).run()
        each = zip(part.specs, found, strict=True)
        return [one if isinstance(one, Landed) else self._failed(spec, one) for spec, one in each]

    def _touch(self, spec: WindowSpec) -> None:
        self.touched.add((table_of(spec), spec.plan.window))

    def _failed(self, spec: WindowSpec, error: BaseException) -> WindowFailure:
        known = _blamed(spec, error)
        return WindowFailure.of(known, untouched=(table_of(spec), spec.plan.window) not in self.touched)


def _passes(job: JobSpec, numbers: Iterable[int]) -> list[list[int]]:
    """The windows of each pass: those of a table whose payloads become the same columns.

    Without a transform, windows of other tables join them, whatever their columns are.
    """
    rounds: dict[str, dict[str, int]] = defaultdict(dict)
    found: dict[str | int, list[int]] = {}
    for number in numbers:
        spec = job.specs[number]
        decoding = spec.plan.decoding
        types = json.dumps([] if decoding is None else [str(decoding.value), str(decoding.key)])
        known = rounds[table_of(spec)]
        found.setdefault(known.setdefault(types, len(known)) if job.how.is_direct else types, []).append(number)
    return list(found.values())


def _with_columns(spec: WindowSpec, columns: Mapping[str, Schema]) -> WindowSpec:
    """The same for a table that has got these columns since its plan was pinned."""
    landed = columns.get(table_of(spec))
    if spec.terms is None or not landed:
        return spec
    before = spec.terms.columns or ()
    later = (*spec.terms.later, *new_columns(before, landed))
    return replace(spec, terms=replace(spec.terms, columns=grown(before, landed), later=later))


def _blamed(spec: WindowSpec, error: BaseException) -> BaseException:
    """The typed error of a window, logged."""
    error = error_transport.typed(error, spec.hidden)
    if isinstance(error, DecodeError) and spec.sink is not None:
        keeps_columns = writer_of(spec.sink).keeps_columns
        error.for_table(keeps_events=may_keep_undecodable(spec.sink), keeps_columns=keeps_columns)
    if spec.transform:
        error = Transform(spec.transform, spec).blamed(error)
    if isinstance(error, StreamsError):
        _log.warning("window %s failed: %s: %s", spec.plan.window, type(error).__name__, error)
    else:
        text = "".join(traceback.format_exception(error))
        _log.error("window %s failed: %s", spec.plan.window, redact(text, spec.hidden))
    return error


def _can_share(part: JobSpec) -> bool:
    """Whether one pass can write all windows: the sink can, and so can a transform."""
    sink = part.how.sink
    writes_many = sink is None or writes_files(sink)
    return part.is_single or (writes_many and (part.transform is None or part.is_small))
