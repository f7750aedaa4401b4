"""Many windows in one job: what it is told, and what it answers about each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from airflow_provider_streams.errors import (
    AccessError,
    AuthenticationFailed,
    CertificateNotTrusted,
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
from airflow_provider_streams.model.landing import Held, Landed
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
    """Windows to read in one job, each with its own receipt.

    Their specs differ in the plan, and in the table with what holds for it and is held of the window there; all are of
    one connection, and all tables of one.

    Raises:
        InvalidRequest: none.
    """

    specs: tuple[JobSpec, ...]
    fans_out: bool = False
    """Whether each source has a table of its own: then what is wrong with one is no matter of the others. They need not
    be among these windows: a retry may have one table left."""

    def __post_init__(self) -> None:
        if not self.specs:
            raise InvalidRequest("a chunk needs at least one window")

    @property
    def how(self) -> JobSpec:
        """Any one of the specs: columns, transform, options and the kind of the sink are the same in all."""
        return self.specs[0]

    @property
    def is_small(self) -> bool:
        """Whether the driver program reads all of them itself."""
        limit = self.how.small_plan_bytes
        return limit > 0 and sum(spec.plan.estimate.bytes for spec in self.specs) <= limit

    @property
    def leaves_jvm_idle(self) -> bool:
        """See `JobSpec`."""
        return self.is_small or self.how.is_direct

    @property
    def may_need_no_spark(self) -> bool:
        """See `JobSpec`."""
        return self.is_small and self.transform is None and (not self.how.sink or self.how.is_direct)

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
        return replace(self, specs=self.specs[first:end])

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values without the secrets, but with their names.

        A spec's, with `plans`, `all_held`, and the `tables` (sink and terms), of which each has the one of `in_table`;
        and `fans_out`.
        """
        tables = [json.dumps([spec.to_json()[name] for name in _TABLE]) for spec in self.specs]
        known = list(dict.fromkeys(tables))
        return {
            **self.how.to_json(),
            "plans": [spec.plan.to_json() for spec in self.specs],
            "all_held": [spec.held.to_json() if spec.held else None for spec in self.specs],
            "tables": [dict(zip(_TABLE, json.loads(one), strict=True)) for one in known],
            "in_table": [known.index(one) for one in tables],
            "fans_out": self.fans_out,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any], environ: Mapping[str, str]) -> Self:
        """The reverse of `to_json` and `secret_environment`.

        Raises:
            PreflightFailed: a secret's variable did not arrive.
        """
        one = {name: value for name, value in data.items() if name not in _OF_ALL}
        tables = [JobSpec.from_json({**one, **table}, environ) for table in data["tables"]]
        each = zip(data["plans"], data["all_held"], data["in_table"], strict=True)
        return cls(
            tuple(
                replace(tables[number], plan=Plan.from_json(plan), held=Held.from_json(held) if held else None)
                for plan, held, number in each
            ),
            data["fans_out"],
        )

    @classmethod
    def of(cls, plans: Sequence[Plan], how: JobSpec, *, held: Sequence[Held | None] | None = None) -> Self:
        """These plans, read as one spec says; `held` as `JobSpec`'s, for each."""
        known = held or [None] * len(plans)
        return cls(tuple(replace(how, plan=plan, held=one) for plan, one in zip(plans, known, strict=True)))


_OF_ALL = ("plans", "all_held", "tables", "in_table", "fans_out")
_TABLE = ("sink", "terms")


def table_of(spec: JobSpec) -> str:
    """What says whether two windows are of one table."""
    return spec.sink.asset_uri if spec.sink else ""


def concerns_all(error: BaseException, *, several_tables: bool = False) -> bool:
    """Whether an error is no single window's: reading the others apart from it would meet it again.

    Where each source has a table of its own, most errors are one source's or one table's; that nothing answers at all
    is told by several of them, see `model.patience`.
    """
    if several_tables:
        return isinstance(error, PreflightFailed | TaskEnded | AuthenticationFailed | CertificateNotTrusted)
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
