"""The description of a job: each window's plan and sink, and how to read them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from airflow_provider_streams.errors import InvalidRequest, PreflightFailed
from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.lake.connections import secrets_of
from airflow_provider_streams.lake.registry import sink_from_json, writes_files
from airflow_provider_streams.model.plan.plan import OnLoss, Plan
from airflow_provider_streams.model.schema.decode_errors import DecodeErrorPolicy
from airflow_provider_streams.model.sinks.landing import Held, TableTerms
from airflow_provider_streams.model.sinks.sink import Sink
from airflow_provider_streams.spark.datasource.read_options import SplitReadOptions
from airflow_provider_streams.spark.settings.spark_settings import SMALL_PLAN_BYTES
from airflow_provider_streams.systems.registry import declaration_of, path_of, register

_TABLE = "table_connection"
"""All settings of the table's connection, as one secret."""

_SECRET_PREFIX = "STREAMS_SECRET_"  # noqa: S105 - the name of a variable


@dataclass(frozen=True)
class WindowSpec:
    """One window to read and where it lands.

    Args:
        plan: what to read.
        sink: where the rows land; None: they are only read, counted and proven.
        columns: which columns; None: the system's default ones.
        transform: `package.module:function`, a function that turns a DataFrame into a DataFrame, imported where the
            Spark driver program runs. It must not run an action itself.
        on_loss: `record` accepts events that vanish while they are read, and counts them in the receipt.
        terms: whose table the sink must be, and what may be replaced in it; None: there is no sink.
        undecodable: what becomes of events that cannot be decoded.
        quarantine: the folder for quarantined events; the job makes it for its sink.
        held: what the table holds of this window now, and must not become less; None: it may.
        options: the system's options by name; may hold secrets.
        table: the settings of the sink's connection, see `lake.connections`; may hold secrets.
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
    undecodable: DecodeErrorPolicy = field(default_factory=DecodeErrorPolicy)
    quarantine: str | None = None
    table: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.sink is not None and self.terms is None:
            raise InvalidRequest("a table has one owner: say whose it must be (terms=TableTerms(TableMark(..)))")

    @property
    def is_direct(self) -> bool:
        """Whether the process that reads its rows writes them: they never cross into Spark."""
        return self.transform is None and writes_files(self.sink)

    @property
    def split_read_options(self) -> SplitReadOptions:
        """How its splits are read."""
        return SplitReadOptions(self.columns, self.on_loss, self.undecodable, self.quarantine)

    @property
    def secret_options(self) -> dict[str, str]:
        """The source's options that must not be shown; empty ones are none."""
        hidden = {option.name for option in declaration_of(self.plan.source.system).options if option.secret}
        return {name: value for name, value in self.options.items() if name in hidden and value}

    @property
    def secrets(self) -> dict[str, str]:
        """What travels apart from the JSON, by name: options, and all settings of the table's connection."""
        return self.secret_options | ({_TABLE: json.dumps(dict(self.table))} if self.table else {})

    @property
    def hidden(self) -> list[str]:
        """Texts that no message may show; the other settings of the table's connection may be part of an advice."""
        return [*self.secret_options.values(), *secrets_of(self.table)]

    def secret_environment(self) -> dict[str, str]:
        """The secrets as environment variables, for `JobSpec.from_json` in another process."""
        return {secret_variable(name): value for name, value in self.secrets.items()}


@dataclass(frozen=True)
class JobSpec:
    """Windows to read in one job, each with its own receipt; one window is a job as well.

    Their specs differ in plan, sink, terms and held rows. All sources are of one connection, and all tables of one.

    Raises:
        InvalidRequest: none.
    """

    specs: tuple[WindowSpec, ...]
    fans_out: bool = False
    """Whether each source has a table of its own, so that a failure of one does not fail the others. A retry may have
    one table left."""

    def __post_init__(self) -> None:
        if not self.specs:
            raise InvalidRequest("a job needs at least one window")

    @property
    def how(self) -> WindowSpec:
        """One of the specs: columns, transform, options and the kind of the sink are the same in all."""
        return self.specs[0]

    @property
    def is_single(self) -> bool:
        """Whether it reads one window."""
        return len(self.specs) == 1

    @property
    def is_small(self) -> bool:
        """Whether the driver program reads all windows itself; empty ones need no reading."""
        if all(spec.plan.is_empty for spec in self.specs):
            return True
        limit = self.how.small_plan_bytes
        return limit > 0 and sum(spec.plan.estimate.bytes for spec in self.specs) <= limit

    @property
    def leaves_jvm_idle(self) -> bool:
        """Whether few rows pass through Spark's JVM, or none: then it need not compile the fastest code for them."""
        return self.is_small or self.how.is_direct

    @property
    def may_need_no_spark(self) -> bool:
        """Whether the driver program can do it all, without a JVM, unless the rows outgrow it."""
        return self.is_small and self.transform is None and (not self.how.sink or self.how.is_direct)

    @property
    def transform(self) -> str | None:
        """See `WindowSpec`."""
        return self.how.transform

    @property
    def title(self) -> str:
        """What Spark's UI calls the application."""
        first = self.how.plan
        if self.is_single:
            return f"streams {first.fingerprint[:12]}"
        return f"streams {counted(len(self.specs), 'window')} from {first.window.label}"

    def part(self, first: int, end: int) -> Self:
        """The specs `[first, end)`."""
        return replace(self, specs=self.specs[first:end])

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values without the secrets, but with their names; each table is written once."""
        how, secrets = self.how, self.how.secrets
        tables = [
            json.dumps({"sink": one.sink and one.sink.to_json(), "terms": one.terms and one.terms.to_json()})
            for one in self.specs
        ]
        known = list(dict.fromkeys(tables))
        return {
            "declaration": path_of(how.plan.source.system),
            "columns": list(how.columns) if how.columns is not None else None,
            "transform": how.transform,
            "on_loss": how.on_loss,
            "options": {name: value for name, value in how.options.items() if name not in secrets},
            "secrets": sorted(secrets),
            "small_plan_bytes": how.small_plan_bytes,
            "undecodable": how.undecodable.to_json(),
            "plans": [spec.plan.to_json() for spec in self.specs],
            "all_held": [spec.held.to_json() if spec.held else None for spec in self.specs],
            "quarantines": [spec.quarantine for spec in self.specs],
            "tables": [json.loads(one) for one in known],
            "in_table": [known.index(one) for one in tables],
            "fans_out": self.fans_out,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any], environ: Mapping[str, str]) -> Self:
        """The reverse of `to_json` and `WindowSpec.secret_environment`.

        Raises:
            PreflightFailed: a secret's variable did not arrive.
        """
        missing = [secret_variable(name) for name in data["secrets"] if secret_variable(name) not in environ]
        if missing:
            raise PreflightFailed(f"the Spark driver's environment lacks {', '.join(missing)}")
        secrets = {name: environ[secret_variable(name)] for name in data["secrets"]}
        table = json.loads(secrets.pop(_TABLE, "{}"))
        plans = [Plan.from_json(plan) for plan in data["plans"]]
        register(plans[0].source.system, data["declaration"])
        sinks = [one["sink"] and sink_from_json(one["sink"]) for one in data["tables"]]
        terms = [one["terms"] and TableTerms.from_json(one["terms"]) for one in data["tables"]]
        how = WindowSpec(
            plans[0],
            columns=tuple(data["columns"]) if data["columns"] is not None else None,
            transform=data["transform"],
            on_loss=data["on_loss"],
            options={**data["options"], **secrets},
            small_plan_bytes=data["small_plan_bytes"],
            undecodable=DecodeErrorPolicy.from_json(data["undecodable"]),
            table=table,
        )
        each = zip(plans, data["all_held"], data["quarantines"], data["in_table"], strict=True)
        specs = (
            replace(
                how,
                plan=plan,
                held=Held.from_json(held) if held else None,
                quarantine=quarantine,
                sink=sinks[number],
                terms=terms[number],
            )
            for plan, held, quarantine, number in each
        )
        return cls(tuple(specs), data["fans_out"])

    @classmethod
    def of(cls, plans: Sequence[Plan], how: WindowSpec) -> Self:
        """These plans, read as one spec says."""
        return cls(tuple(replace(how, plan=plan) for plan in plans))


def table_of(spec: WindowSpec) -> str:
    """The key of a window's table within a job."""
    return spec.sink.asset_uri if spec.sink else ""


def secret_variable(option: str) -> str:
    """The environment variable that carries a secret option."""
    return _SECRET_PREFIX + option.upper()
