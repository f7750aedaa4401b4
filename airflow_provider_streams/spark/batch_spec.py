"""Many windows in one job: what it is told, and what it answers about each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from airflow_provider_streams.errors import (
    AccessError,
    DataLoss,
    InvalidRequest,
    PreflightFailed,
    ReadStalled,
    SinkError,
    StreamsError,
    SystemUnavailable,
    TaskEnded,
    WindowsOverlap,
)
from airflow_provider_streams.model.landing import Landed
from airflow_provider_streams.model.plan import Plan
from airflow_provider_streams.spark.spec import JobSpec


@dataclass(frozen=True, slots=True)
class WindowFailure:
    """Why one window of a chunk was not covered; the others go on without it."""

    error_type: str
    message: str
    lost: bool = False
    """The stream no longer holds what the window needs."""
    retryable: bool = False

    @classmethod
    def of(cls, error: BaseException) -> Self:
        """From what was raised. A foreign error's words may quote anything: only its class is kept."""
        if isinstance(error, StreamsError):
            return cls(type(error).__name__, str(error), isinstance(error, DataLoss), error.retryable)
        return cls(type(error).__name__, "see the log of the Spark job")

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The reverse of `to_json`."""
        return cls(**data)


WindowResult = Landed | WindowFailure
"""What became of one window of a chunk."""


@dataclass(frozen=True)
class ChunkSpec:
    """Windows to read in one job, each with its own receipt; their specs differ in nothing but the plan.

    Raises:
        InvalidRequest: none.
    """

    specs: tuple[JobSpec, ...]

    def __post_init__(self) -> None:
        if not self.specs:
            raise InvalidRequest("a chunk needs at least one window")

    @property
    def how(self) -> JobSpec:
        """Any one of the specs: sink, columns, transform and options are the same in all."""
        return self.specs[0]

    @property
    def is_small(self) -> bool:
        """Whether the driver program reads all of them itself."""
        limit = self.how.small_plan_bytes
        return limit > 0 and sum(spec.plan.estimate.bytes for spec in self.specs) <= limit

    @property
    def transform(self) -> str | None:
        """See `JobSpec`."""
        return self.how.transform

    @property
    def secrets(self) -> dict[str, str]:
        """See `JobSpec`."""
        return self.how.secrets

    def secret_environment(self) -> dict[str, str]:
        """See `JobSpec`."""
        return self.how.secret_environment()

    def part(self, first: int, end: int) -> Self:
        """The specs `[first, end)`."""
        return type(self)(self.specs[first:end])

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values without the secrets, but with their names: a spec's, with `plans` and `all_held`."""
        plans = [spec.plan.to_json() for spec in self.specs]
        return {**self.how.to_json(), "plans": plans, "all_held": [spec.held for spec in self.specs]}

    @classmethod
    def from_json(cls, data: dict[str, Any], environ: Mapping[str, str]) -> Self:
        """The reverse of `to_json` and `secret_environment`.

        Raises:
            PreflightFailed: a secret's variable did not arrive.
        """
        return cls.of(
            [Plan.from_json(plan) for plan in data["plans"]],
            JobSpec.from_json({name: value for name, value in data.items() if name not in _LISTS}, environ),
            held=data["all_held"],
        )

    @classmethod
    def of(cls, plans: Sequence[Plan], how: JobSpec, *, held: Sequence[int | None] | None = None) -> Self:
        """These plans, read as one spec says; `held` as `JobSpec`'s, for each."""
        known = held or [None] * len(plans)
        return cls(tuple(replace(how, plan=plan, held=rows) for plan, rows in zip(plans, known, strict=True)))


_LISTS = ("plans", "all_held")


def concerns_all(error: BaseException) -> bool:
    """Whether an error is no single window's: reading the others apart from it would meet it again."""
    if isinstance(error, ReadStalled):
        return False
    if isinstance(error, WindowsOverlap):
        return False
    return isinstance(error, AccessError | SystemUnavailable | PreflightFailed | InvalidRequest | SinkError | TaskEnded)


def results_to_json(results: Sequence[WindowResult]) -> list[dict[str, Any]]:
    """For the result file of a job, in the order of the chunk."""
    return [
        {"landed": result.to_json()} if isinstance(result, Landed) else {"failure": result.to_json()}
        for result in results
    ]


def results_from_json(data: Sequence[dict[str, Any]]) -> list[WindowResult]:
    """The reverse of `results_to_json`."""
    return [
        Landed.from_json(one["landed"]) if "landed" in one else WindowFailure.from_json(one["failure"]) for one in data
    ]
