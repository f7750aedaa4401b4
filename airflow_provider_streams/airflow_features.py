"""What only newer versions of Airflow can do, and what takes its place in older ones.

The rest of the package asks `has` or calls a function of this module; it never compares versions. Names that only moved
come from `airflow.providers.common.compat`.
"""

from __future__ import annotations

import threading
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.model.window.window import in_utc

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from types import ModuleType

_FIRST_ATTEMPT = "streams_begun"
_TURN = threading.RLock()


@dataclass(frozen=True, slots=True)
class _Facts:
    since: tuple[int, int]
    used_for: str
    instead: str


class Feature(Enum):
    """A feature of Airflow that this package uses where it exists."""

    PROVIDER_COMMANDS = _Facts((3, 2), "`airflow streams ..`", "the same commands as `airflow-streams ..`")
    CONCURRENT_REQUESTS = _Facts(
        (3, 2),
        "threads of a task, such as those that plan windows, get connections at the same time",
        "they get them one after the other",
    )
    # 3.2 has partitions, but tells a task only their keys, which name two hours alike where clocks go back
    PARTITIONED_RUNS = _Facts(
        (3, 3),
        "a run's window is its partition; `window_timetable` gives a `CronPartitionTimetable`",
        "a run's window is its data interval; `window_timetable` gives a `CronDataIntervalTimetable`",
    )
    PARTITION_EVENTS = _Facts(
        (3, 3),
        "an asset event per landed window, under its partition key; daily DAGs wait for 24 keys",
        "one asset event for the table, which lists the landed windows",
    )
    RETRY_POLICIES = _Facts(
        (3, 3),
        "`stream_retry_policy()` for any task",
        "it gives None; tasks of this package stop their retries with `AirflowFailException`",
    )
    SHARED_STREAMS = _Facts(
        (3, 3),
        "`PulsarMessagesTrigger` acknowledges messages once Airflow has stored their event",
        "it ends after each event, and acknowledges messages once the triggerer has started it again",
    )
    START_FROM_TRIGGER = _Facts(
        (3, 3),
        "`WindowReadySensor(start_from_trigger=True)` takes a worker only once its window is complete",
        "it takes a worker for its first look, and then waits in the triggerer",
    )
    TASK_STATE = _Facts(
        (3, 3),
        "a retry knows the earlier attempts of its task instance by the time of the first one",
        "it knows them by the start of the DAG run: clearing another task of the run hides them",
    )

    @property
    def since(self) -> str:
        """The first version of Airflow that has it, such as `3.3`."""
        return ".".join(map(str, self.value.since))


def has(feature: Feature) -> bool:
    """Whether the installed Airflow has a feature."""
    return _installed() >= feature.value.since


@cache
def _installed() -> tuple[int, int]:
    major, minor, *_ = metadata.version("apache-airflow-core").split(".")
    return int(major), int(minor)


def features_table() -> str:
    """All features as a Markdown table."""
    rows = [f"| {one.since} | {one.value.used_for} | {one.value.instead} |" for one in Feature]
    return "\n".join(["| since Airflow | with it | before |", "|---|---|---|", *rows])


def shared_stream_producer() -> type:
    """The base class of a trigger's producer for shared streams; a plain class where Airflow has none."""
    if not has(Feature.SHARED_STREAMS):
        return object
    from airflow.triggers.shared_stream import SharedStreamProducer  # noqa: PLC0415 - only where there is one

    return SharedStreamProducer


async def amask_secret(secret: str) -> None:
    """Hide a secret in Airflow's logs, from within an event loop."""
    try:
        from airflow.sdk.log import amask_secret as mask  # noqa: PLC0415 - before a task needs it
    except ImportError:
        from airflow.providers.common.compat.sdk import mask_secret  # noqa: PLC0415

        await _in_thread(lambda: mask_secret(secret))
    else:
        await mask(secret)


async def aextra_dejson(connection: Any) -> dict[str, Any]:
    """A connection's extras, from within an event loop; Airflow masks their secrets in its logs."""
    if hasattr(connection, "aextra_dejson"):
        return dict(await connection.aextra_dejson())
    return dict(await _in_thread(lambda: connection.extra_dejson))


def supervisor_turn() -> AbstractContextManager[object]:
    """What a thread of a task holds while it gets a connection from Airflow, or has a secret hidden.

    Before 3.2, threads that ask the supervisor at the same time take each other's answers, and then wait for ever.
    """
    return nullcontext() if has(Feature.CONCURRENT_REQUESTS) else _TURN


async def _in_thread(asks: Callable[[], Any]) -> Any:
    """Before 3.3, only a thread may wait for the supervisor.

    It must be one of `asgiref`: that lets this loop send and receive. Any other would have a loop of its own, and a
    triggerer of 3.1 ends itself when two loops read its answers.
    """
    from asgiref.sync import sync_to_async  # noqa: PLC0415 - Airflow's own

    return await sync_to_async(asks)()


def core_timetable(timetable: Any) -> Any:
    """A timetable as Airflow's scheduler has it; DAG files have another class for it since 3.2."""
    try:
        from airflow.serialization.encoders import coerce_to_core_timetable  # noqa: PLC0415 - where a run is
    except ImportError:
        return timetable
    return coerce_to_core_timetable(timetable)


def first_attempt(context: Mapping[str, Any]) -> datetime:
    """When the first attempt of this task instance began, or a moment before that.

    A run that was deleted and made again under its old name has new task instances. Only Airflow's own store of the
    task instance tells them apart: it is deleted together with the run.
    """
    if not has(Feature.TASK_STATE):
        return in_utc(context["dag_run"].start_date)
    from airflow.sdk.execution_time.context import NEVER_EXPIRE  # noqa: PLC0415 - where a task runs

    store = context["task_state_store"]
    known = store.get(_FIRST_ATTEMPT, default=None)
    if known is None:
        known = datetime.now(UTC).isoformat()
        store.set(_FIRST_ATTEMPT, known, retention=NEVER_EXPIRE)
    return datetime.fromisoformat(str(known))


def dag_bags() -> ModuleType:
    """The module of `BundleDagBag`, `DagBag` and `sync_bag_to_db`, which moved in 3.2."""
    try:
        return import_module("airflow.dag_processing.dagbag")
    except ImportError:
        return import_module("airflow.models.dagbag")
