"""Many windows in one job: read together, written in one pass, each proven and put in place on its own.

| what | how |
|---|---|
| a chunk's plans are small together | read and written by this process |
| larger | one scan of the splits of all plans, whose tasks write what they read (`split_tasks`) |
| a transform | sees one window at a time, as in a job of one window; more rows than fit are halved |
| a window that cannot be read | fails alone; a chunk that fails as a whole is halved until the failure stands alone |
| several tables, each of a source of its own | what is wrong with one is no matter of the others |
"""

from __future__ import annotations

import json
import logging
import traceback
from collections import defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_provider_streams.errors import AccessError, LandingMismatch, OtherCluster, StreamsError
from airflow_provider_streams.model.landing import Landed, Schema, grown, new_columns
from airflow_provider_streams.model.patience import Patience
from airflow_provider_streams.redaction import redact
from airflow_provider_streams.spark import failures, job, preflight, reading, sinks
from airflow_provider_streams.spark.batch_reading import WINDOWS_AT_ONCE, OwnSettings
from airflow_provider_streams.spark.batch_spec import ChunkSpec, WindowFailure, WindowResult, concerns_all, table_of
from airflow_provider_streams.spark.session_setting import with_times_of_day
from airflow_provider_streams.spark.spec import JobSpec
from airflow_provider_streams.spark.together import Together
from airflow_provider_streams.spark.transforms import Transform, unchanged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)


def run_chunk(chunk: ChunkSpec, spark: SparkSession) -> list[WindowResult]:
    """Read, prove and put in place every window of a chunk; what became of each, in the chunk's order.

    Raises:
        PreflightFailed, InvalidRequest, AccessError, SystemUnavailable, SinkError: it concerns all windows alike. Those
            that were put in place before stay so.
    """
    decodings = (spec.plan.decoding for spec in chunk.specs)
    times = nullcontext() if chunk.how.is_direct else with_times_of_day(spark, decodings)
    with times, sinks.connected(chunk.how.sink, chunk.how.table):
        return _run_chunk(chunk, spark)


def _run_chunk(chunk: ChunkSpec, spark: SparkSession) -> list[WindowResult]:
    foreign = _of_other_clusters(chunk)
    own = [number for number in range(len(chunk.specs)) if number not in foreign]
    if own and not chunk.is_small:
        preflight.check_workers(spark)
    if chunk.transform:
        Transform(chunk.transform, chunk.how).rehearse(spark)
    _log.info("reading %d windows in one job", len(own))
    results: dict[int, WindowResult] = {**foreign}
    passes, patience = _passes(chunk, own), Patience(several=chunk.fans_out)
    columns: dict[str, Schema] = {}
    for numbers in passes:
        part = replace(chunk, specs=tuple(_with_columns(chunk.specs[number], columns) for number in numbers))
        read = _attempt(part, spark, patience) if len(passes) == 1 else _beside_others(part, spark, patience)
        results |= zip(numbers, read, strict=True)
        for spec, one in zip(part.specs, read, strict=True):
            if isinstance(one, Landed) and one.schema:
                columns[table_of(spec)] = one.schema
    return [results[number] for number in range(len(chunk.specs))]


def _beside_others(part: ChunkSpec, spark: SparkSession, patience: Patience) -> list[WindowResult]:
    """Windows whose columns others of the chunk do not have: if the table cannot take them, that concerns these."""
    try:
        return _attempt(part, spark, patience)
    except LandingMismatch as error:
        return [_failed(spec, error) for spec in part.specs]


def _passes(chunk: ChunkSpec, numbers: Iterable[int]) -> list[list[int]]:
    """The windows that are read in one pass: those of a table whose payloads become the same columns.

    Without a transform, windows of other tables join them, whatever their columns are.
    """
    rounds: dict[str, dict[str, int]] = defaultdict(dict)
    found: dict[str | int, list[int]] = {}
    for number in numbers:
        spec = chunk.specs[number]
        decoding = spec.plan.decoding
        types = json.dumps([] if decoding is None else [str(decoding.value), str(decoding.key)])
        known = rounds[table_of(spec)]
        found.setdefault(known.setdefault(types, len(known)) if chunk.how.is_direct else types, []).append(number)
    return list(found.values())


def _with_columns(spec: JobSpec, columns: Mapping[str, Schema]) -> JobSpec:
    """The same for a table that has these columns by now; its plan was pinned before."""
    landed = columns.get(table_of(spec))
    if spec.terms is None or not landed:
        return spec
    before = spec.terms.columns or ()
    later = (*spec.terms.later, *new_columns(before, landed))
    return replace(spec, terms=replace(spec.terms, columns=grown(before, landed), later=later))


def _of_other_clusters(chunk: ChunkSpec) -> dict[int, WindowFailure]:
    """The windows whose plans mean nothing here; each origin is asked about once, some side by side."""
    first = {spec.plan.source: spec for spec in reversed(chunk.specs)}
    with ThreadPoolExecutor(min(WINDOWS_AT_ONCE, len(first)), thread_name_prefix="streams-origin") as pool:
        asked = pool.map(lambda spec: _origin_problem(spec, several=chunk.fans_out), first.values())
        problems = dict(zip(first, asked, strict=True))
    return {
        number: _failed(spec, problem)
        for number, spec in enumerate(chunk.specs)
        if (problem := problems[spec.plan.source]) is not None
    }


def _origin_problem(spec: JobSpec, *, several: bool) -> StreamsError | None:
    try:
        job.check_origin(spec, spec.plan)
    except OtherCluster as error:
        return error
    except AccessError as error:
        if not several or concerns_all(error, several_tables=True):
            raise
        return error
    return None


def _attempt(chunk: ChunkSpec, spark: SparkSession, patience: Patience) -> list[WindowResult]:
    try:
        if _can_share(chunk):
            return _together(chunk, spark, patience)
        return [_alone(spec, spark, patience) for spec in chunk.specs]
    except OwnSettings:
        _log.info("the transform changes Spark's settings: each of %d windows is read alone", len(chunk.specs))
        return [_alone(spec, spark, patience) for spec in chunk.specs]
    except reading.TooLarge:
        if len(chunk.specs) == 1:
            return [_alone(chunk.how, spark, patience)]  # which lets Spark's tasks read it
        _log.info("the rows of %d windows are too many for this process and a transform: halving", len(chunk.specs))
    except Exception as error:  # noqa: BLE001 - whatever it is, it must not spoil the other windows
        known = failures.typed(error, chunk.how.hidden)
        if concerns_all(known, several_tables=patience.several):
            raise known from None  # Spark's text is pages of traceback, and may quote a secret
        if len(chunk.specs) == 1:
            patience.note(known)
            return [_failed(chunk.how, known)]
        _log.warning("%d windows failed together (%s): halving", len(chunk.specs), type(known).__name__)
    half = len(chunk.specs) // 2
    parts = chunk.part(0, half), chunk.part(half, len(chunk.specs))
    return [result for part in parts for result in _patiently(part, spark, patience)]


def _patiently(chunk: ChunkSpec, spark: SparkSession, patience: Patience) -> list[WindowResult]:
    """A half of what failed together, unless nothing answers any more."""
    if patience.over:
        return [_failed(spec, patience.over) for spec in chunk.specs]
    return _attempt(chunk, spark, patience)


def _together(chunk: ChunkSpec, spark: SparkSession, patience: Patience) -> list[WindowResult]:
    with unchanged(spark) if chunk.transform else nullcontext():
        found = Together(chunk, spark, patience).run()
    each = zip(chunk.specs, found, strict=True)
    return [one if isinstance(one, Landed) else _failed(spec, one) for spec, one in each]


def _alone(spec: JobSpec, spark: SparkSession, patience: Patience) -> WindowResult:
    if patience.over:
        return _failed(spec, patience.over)
    try:
        return job.run(spec, spark)
    except Exception as error:
        if concerns_all(error, several_tables=patience.several):
            raise
        patience.note(error)
        return _failed(spec, error)


def _failed(spec: JobSpec, error: BaseException) -> WindowFailure:
    if spec.transform:
        error = Transform(spec.transform, spec).blamed(error)
    if isinstance(error, StreamsError):
        _log.warning("window %s failed: %s: %s", spec.plan.window, type(error).__name__, error)
    else:
        text = "".join(traceback.format_exception(error))
        _log.error("window %s failed: %s", spec.plan.window, redact(text, spec.hidden))
    return WindowFailure.of(error)


def _can_share(chunk: ChunkSpec) -> bool:
    """Whether one pass can write all: the sink can, and a transform need not read the stream once per window."""
    sink = chunk.how.sink
    writes_many = sink is None or sinks.writes_files(sink)
    return writes_many and (chunk.transform is None or chunk.is_small)
