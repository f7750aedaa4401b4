"""Whether a reader's table can take the rows of a plan, before the plan is pinned."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from airflow_provider_streams.errors import (
    FULL_REFRESH_HINT,
    InvalidRequest,
    SinkError,
    StreamsError,
    TableUnavailable,
    foreseen,
)
from airflow_provider_streams.lake.registry import writer_of
from airflow_provider_streams.model.schema.payload import Auto, Payload, Registry
from airflow_provider_streams.model.sinks.landing import Landing, Schema, TableTerms, missing_columns
from airflow_provider_streams.systems.planned_changes import change_terms_of
from airflow_provider_streams.systems.source_json import decoded_source, payloads_of
from airflow_provider_streams.windows.plan.payload_decoding import plan_of_nothing

if TYPE_CHECKING:
    from airflow_provider_streams.model.plan.plan import Plan
    from airflow_provider_streams.model.stream.source import Source
    from airflow_provider_streams.model.window.window import Window
    from airflow_provider_streams.systems.base import StreamSystem
    from airflow_provider_streams.windows.claim.landing_request import LandingRequest


class SchemaOutgrown(Exception):
    """The table cannot take the rows of a plan, and the user allows a full refresh."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        super().__init__(str(plan.window))


@dataclass(frozen=True, slots=True)
class RowRequirements:
    """What rows must have to land."""

    landing: Landing
    columns: Schema | None = None
    """Of the reader's table; None: it takes any, or they are not known."""
    may_give_way: bool = False
    """Whether a table that cannot take them is set aside."""

    source: Source | None = None
    """What is read; None: messages suggest no other decoding."""
    may_replan: bool = True
    """Whether windows that are planned again may be decoded differently."""
    _ways: dict[str, str] = field(default_factory=dict, compare=False, repr=False)
    """Remedies that were found, by the known versions of the schema."""

    def check(self, system: StreamSystem, plan: Plan, later: Collection[str] = ()) -> None:
        """Check that the table takes a plan's rows. Only the job knows the columns that a transform gives.

        Args:
            system: knows the columns.
            plan: the rows to read.
            later: see `missing_columns`; for a plan that is pinned already.

        Raises:
            LandingMismatch: they lack columns that the table has, or have them with other types.
            SchemaOutgrown: the same, and the table may be set aside.
            SinkError: the same, and the table keeps columns that do not fit, even after a full refresh.
        """
        from airflow_provider_streams.spark.job.columns_fit_table import check_fit, check_full_refresh  # noqa: PLC0415 - Arrow

        if (rows := self._rows(system, plan)) is None or not self._lacks(rows, later):
            return
        if self.may_give_way:
            check_full_refresh(system, plan, self.landing)  # before the reader is left with a landing that never begins
            raise SchemaOutgrown(plan)
        hint, refresh = self._hint(system, plan, later), relanding_words(system, plan, self.landing)
        with foreseen():
            check_fit(plan, self.columns or (), rows, self.landing.sink, later, hint=hint, refresh=refresh)

    def is_met(self, system: StreamSystem, plan: Plan, later: Collection[str]) -> bool:
        """Whether `check` would pass."""
        return (rows := self._rows(system, plan)) is None or not self._lacks(rows, later)

    def _rows(self, system: StreamSystem, plan: Plan) -> Schema | None:
        """The columns of a plan's rows; None: they do not matter, or are not known here."""
        from airflow_provider_streams.spark.job.columns_fit_table import columns_of  # noqa: PLC0415 - Arrow

        known = self.columns is not None and self.landing.transform is None
        return columns_of(system, plan, self.landing.columns) if known else None

    def _lacks(self, rows: Schema, later: Collection[str]) -> bool:
        widen = bool(self.landing.sink and self.landing.sink.widen)
        return bool(missing_columns(self.columns or (), rows, later, widen=widen))

    def _hint(self, system: StreamSystem, plan: Plan, later: Collection[str]) -> str:
        versions = _versions_of(plan)
        if self.source is None or len(versions) < _SEVERAL:
            return _NOT_PINNED
        known = " ".join(versions)
        if known not in self._ways:
            self._ways[known] = ", ".join([_NOT_PINNED, *self._other_decodings(system, plan, versions, later)])
        return self._ways[known]

    def _other_decodings(
        self, system: StreamSystem, plan: Plan, versions: Sequence[str], later: Collection[str]
    ) -> Iterator[str]:
        """Other decodings whose rows could land; each was tried."""
        value = payloads_of(self.source)["value"] if self.source else None
        if not isinstance(value, Auto | Registry):
            return
        kind = type(value).__name__
        tries = (replace(value, version=one, as_text=False) for one in versions[-_TRIED:] if one != value.version)
        fitting = (one for one in tries if self.may_replan and self._takes(system, plan, one, later))
        if (first := next(fitting, None)) is not None:
            how = f"value={kind}(version={first.version!r}), with replan=True"
            yield f"let an older version of its schema give the columns ({how})"
        text = replace(value, version="", as_text=True)
        if override := self._override_for(system, plan, text, later):
            yield f"have text where versions differ (value={kind}(as_text=True), with {override})"

    def _override_for(self, system: StreamSystem, plan: Plan, value: Payload, later: Collection[str]) -> str:
        """The override that lands rows decoded so; empty: none does."""
        if self.may_replan and self._takes(system, plan, value, later):
            return "replan=True"
        made = self._decoded(system, plan, value)
        if made is None or self._rows(system, made) == self._rows(system, plan):
            return ""
        return "full_refresh=True" if relanding_words(system, made, self.landing) == FULL_REFRESH_HINT else ""

    def _takes(self, system: StreamSystem, plan: Plan, value: Payload, later: Collection[str]) -> bool:
        made = self._decoded(system, plan, value)
        rows = None if made is None else self._rows(system, made)
        return rows is not None and not self._lacks(rows, later)

    def _decoded(self, system: StreamSystem, plan: Plan, value: Payload) -> Plan | None:
        """An empty plan of rows that are decoded so; None: they cannot be."""
        try:
            source = decoded_source(self.source, {"value": value})  # type: ignore[arg-type]  # looked at before
            return plan_of_nothing(system, source, plan.reader, plan.window)
        except StreamsError:
            return None


@dataclass(frozen=True, slots=True)
class Room:
    """Whether new rows of a window or a span can replace all that a table holds; not known of a transform's rows."""

    opened: Callable[[], AbstractContextManager[StreamSystem]]
    landing_request: LandingRequest
    window: Window

    def check(self) -> None:
        """Check it before the reader's landing changes.

        Raises:
            SinkError: the table keeps columns that do not fit; or it cannot be read.
            StreamsError: the system does not tell how payloads become columns.
        """
        from airflow_provider_streams.spark.job.columns_fit_table import check_full_refresh  # noqa: PLC0415 - Arrow

        if self._is_limited:
            with self.opened() as system:
                check_full_refresh(system, self._plan(system), self.landing_request.landing)

    def relanding(self) -> str:
        """The hint on a full refresh, see `relanding_words`."""
        if not self._is_limited:
            return FULL_REFRESH_HINT
        try:
            with self.opened() as system:
                return relanding_words(system, self._plan(system), self.landing_request.landing)
        except StreamsError:
            return FULL_REFRESH_HINT  # the system does not answer

    @property
    def _is_limited(self) -> bool:
        landing = self.landing_request.landing
        return landing.sink is not None and landing.transform is None and writer_of(landing.sink).keeps_columns

    def _plan(self, system: StreamSystem) -> Plan:
        return plan_of_nothing(system, self.landing_request.source, self.landing_request.reader, self.window)


def relanding_words(system: StreamSystem, plan: Plan, landing: Landing) -> str:
    """How a plan's rows can replace all that a table holds, as a hint; empty: they cannot."""
    from airflow_provider_streams.spark.job.columns_fit_table import check_full_refresh  # noqa: PLC0415 - Arrow

    wide = replace(landing.sink, widen=True) if landing.sink and landing.sink.widen is not None else landing.sink  # type: ignore[type-var]
    for sink, words in (
        (landing.sink, FULL_REFRESH_HINT),
        (wide, f"{FULL_REFRESH_HINT}, and have the sink add columns (widen=True)"),
    ):
        try:
            check_full_refresh(system, plan, replace(landing, sink=sink))
        except SinkError:
            continue
        return words
    return ""


def check_rows(system: StreamSystem, plan: Plan, landing: Landing, terms: TableTerms | None) -> None:
    """Check that a plan's rows may land, before a job reads them. Only the job knows the columns of a transform.

    Args:
        system: knows their columns.
        plan: the rows to read.
        landing: where they are to go.
        terms: see `SinkWriter.check_rows`.

    Raises:
        InvalidRequest: an unknown column is requested.
        SinkError: such a table does not take them, or the existing one does not.
    """
    from airflow_provider_streams.spark.datasource.split_reading import schema_of  # noqa: PLC0415 - Arrow

    rows = schema_of(system, plan, landing.columns)
    if landing.sink is None or landing.transform is not None:
        return
    if terms is not None:
        terms = replace(terms, changes=change_terms_of(plan, landing.columns))
    with (
        suppress(TableUnavailable, InvalidRequest),
        foreseen(),
    ):  # it cannot be read from here: the job that lands there says why
        writer_of(landing.sink).check_rows(landing.sink, rows, terms)


def _versions_of(plan: Plan) -> list[str]:
    """The versions of the schemas in a plan; the last one names the columns."""
    schemas = plan.decoding.schemas.values() if plan.decoding is not None else ()
    return list(dict.fromkeys(version for versions in schemas for version in versions))


_SEVERAL: Final = 2
_TRIED: Final = 8
"""How many of the newest versions are tried for a message."""
_NOT_PINNED: Final = "see that its events are decoded to all of these (its window was not planned, and stays as it was)"
