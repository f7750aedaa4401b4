"""What a job is told: a plan, a sink, and how to read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from airflow_provider_streams.errors import InvalidRequest, PreflightFailed
from airflow_provider_streams.lake.connections import secrets_of
from airflow_provider_streams.model.landing import Held, TableTerms
from airflow_provider_streams.model.plan import OnLoss, Plan
from airflow_provider_streams.model.sink import Sink
from airflow_provider_streams.model.undecodable import Undecodable
from airflow_provider_streams.spark.manner import Manner
from airflow_provider_streams.spark.sinks import sink_from_json, writes_files
from airflow_provider_streams.systems.registry import declaration_of, path_of, register

SMALL_PLAN_BYTES = 32 * 1024 * 1024
"""Plans of at most so many stored bytes are read by the job's own process."""

_TABLE = "table_connection"
"""All that the table's connection says, as one secret."""

_SECRET_PREFIX = "STREAMS_SECRET_"  # noqa: S105 - the name of a variable


@dataclass(frozen=True)
class JobSpec:
    """One window to read and where it lands.

    Args:
        plan: what to read.
        sink: where the rows land; None: they are read, counted and proven, and nothing is kept.
        columns: which columns; None: the system's default ones.
        transform: `package.module:function`, a function that turns a DataFrame into a DataFrame, imported where the
            Spark driver program runs. It must not run an action itself.
        on_loss: `record` accepts events that vanish while they are read, and counts them in the receipt.
        terms: whose table the sink must be, and what may give way in it; None: there is no sink.
        undecodable: what becomes of events that cannot be decoded.
        quarantine: the folder where tasks keep those of them that are quarantined; made by the job for its sink.
        held: what the table holds of this window now: less is not put in its place. None: anything is.
        options: the system's options by name; may hold secrets.
        table: what the connection of the sink's table says, see `lake.connections`; may hold secrets.
        small_plan_bytes: plans up to this size are read by the driver program; 0: none.
    """

    plan: Plan
    sink: Sink | None = None
    columns: tuple[str, ...] | None = None
    transform: str | None = None
    on_loss: OnLoss = "fail"
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    small_plan_bytes: int = SMALL_PLAN_BYTES
    terms: TableTerms | None = None
    held: Held | None = None
    undecodable: Undecodable = field(default_factory=Undecodable)
    quarantine: str | None = None
    table: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.sink is not None and self.terms is None:
            raise InvalidRequest("a table has one owner: say whose it must be (terms=TableTerms(TableMark(..)))")

    @property
    def is_small(self) -> bool:
        """Whether the driver program reads it itself."""
        return self.plan.estimate.bytes <= self.small_plan_bytes and self.small_plan_bytes > 0

    @property
    def is_direct(self) -> bool:
        """Whether who reads its rows writes them: they never cross into Spark."""
        return self.transform is None and writes_files(self.sink)

    @property
    def leaves_jvm_idle(self) -> bool:
        """Whether few of its rows pass through Spark's JVM, or none: then it need not compile them the best code."""
        return self.is_small or self.is_direct

    @property
    def may_need_no_spark(self) -> bool:
        """Whether the driver program can do it all, unless the rows outgrow it: then no JVM need start."""
        return (self.is_small or self.plan.is_empty) and self.transform is None and (not self.sink or self.is_direct)

    @property
    def manner(self) -> Manner:
        """How its splits are read."""
        return Manner(self.columns, self.on_loss, self.undecodable, self.quarantine)

    @property
    def secret_options(self) -> dict[str, str]:
        """The source's options that must not be shown; empty ones are none."""
        hidden = {option.name for option in declaration_of(self.plan.source.system).options if option.secret}
        return {name: value for name, value in self.options.items() if name in hidden and value}

    @property
    def secrets(self) -> dict[str, str]:
        """What must not be shown, by name: options, and all that the table's connection says."""
        return self.secret_options | ({_TABLE: json.dumps(dict(self.table))} if self.table else {})

    @property
    def hidden(self) -> list[str]:
        """Texts that no message may show."""
        return [*self.secrets.values(), *secrets_of(self.table)]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values without the secrets, but with their names."""
        secrets = self.secrets
        return {
            "plan": self.plan.to_json(),
            "declaration": path_of(self.plan.source.system),
            "sink": self.sink.to_json() if self.sink else None,
            "columns": list(self.columns) if self.columns is not None else None,
            "transform": self.transform,
            "on_loss": self.on_loss,
            "options": {name: value for name, value in self.options.items() if name not in secrets},
            "secrets": sorted(secrets),
            "small_plan_bytes": self.small_plan_bytes,
            "terms": self.terms.to_json() if self.terms else None,
            "held": self.held.to_json() if self.held else None,
            "undecodable": self.undecodable.to_json(),
            "quarantine": self.quarantine,
        }

    def secret_environment(self) -> dict[str, str]:
        """The secrets as environment variables, for `from_json` in another process."""
        return {secret_variable(name): value for name, value in self.secrets.items()}

    @classmethod
    def from_json(cls, data: dict[str, Any], environ: Mapping[str, str]) -> Self:
        """The reverse of `to_json` and `secret_environment`.

        Raises:
            PreflightFailed: a secret's variable did not arrive.
        """
        missing = [secret_variable(name) for name in data["secrets"] if secret_variable(name) not in environ]
        if missing:
            raise PreflightFailed(f"the Spark driver's environment lacks {', '.join(missing)}")
        secrets = {name: environ[secret_variable(name)] for name in data["secrets"]}
        table = json.loads(secrets.pop(_TABLE, "{}"))
        plan = Plan.from_json(data["plan"])
        register(plan.source.system, data["declaration"])
        return cls(
            plan=plan,
            sink=sink_from_json(data["sink"]) if data["sink"] else None,
            columns=tuple(data["columns"]) if data["columns"] is not None else None,
            transform=data["transform"],
            on_loss=data["on_loss"],
            options={**data["options"], **secrets},
            small_plan_bytes=data["small_plan_bytes"],
            terms=TableTerms.from_json(data["terms"]) if data["terms"] else None,
            held=Held.from_json(data["held"]) if data["held"] else None,
            undecodable=Undecodable.from_json(data["undecodable"]),
            quarantine=data["quarantine"],
            table=table,
        )


def secret_variable(option: str) -> str:
    """The environment variable that carries a secret option."""
    return _SECRET_PREFIX + option.upper()
