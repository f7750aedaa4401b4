"""What a stream system says of a source before its first window: how rows are typed, and how long events stay."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from airflow_provider_streams.errors import InvalidRequest, InvalidSchema, as_sentence
from airflow_provider_streams.hooks.base import StreamHook, hook_for
from airflow_provider_streams.model.schema.change_payload import ChangePayload
from airflow_provider_streams.model.schema.ddl import ddl
from airflow_provider_streams.model.schema.payload import Auto, Registry
from airflow_provider_streams.model.schema.types import StructOf, columns
from airflow_provider_streams.model.stream.retention import Schedule, Verdict, judge
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.systems.registry import load_system
from airflow_provider_streams.systems.schemas import SchemaKeeper, SchemaVersion, types_of
from airflow_provider_streams.systems.source_json import decoded_source, payloads_of

OUTAGE: Final = timedelta(days=7)
"""So long the windows may stay unread after their end: a week in which no one looks."""


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """A source and what its system says of it.

    Args:
        source: decoded by its schema, if it has one and the user said nothing else.
        rows: how its rows are typed, as a sentence.
        verdict: whether its events stay until they are read; None: the system cannot say.
    """

    source: Source
    rows: str
    verdict: Verdict | None
    is_in_time: bool = True
    """Whether events stay until their window is read, if no run is late."""

    @property
    def retention(self) -> str:
        """How long events stay, as a sentence."""
        return "how long events stay is not known" if self.verdict is None else str(self.verdict)

    @property
    def warning(self) -> str:
        """What to do before events are lost; empty: nothing."""
        if self.verdict is None or not self.verdict.is_risk:
            return ""
        if not self.is_in_time:
            return (
                f"Retention: {self.verdict}. Events go before their window is read, even without an outage: keep them "
                "longer before you run this DAG, or hold them with HoldRetentionOperator."
            )
        return (
            f"Retention: {self.verdict}. After an outage of {OUTAGE.days} days, windows would be lost: keep events "
            "longer, or hold unread ones with HoldRetentionOperator."
        )


def ask_source(source: Source, window_length: timedelta) -> SourceFacts:
    """Ask the system; nothing is changed.

    Raises:
        SourceNotFound: there is no such source.
        MultipleRecordTypes: its user must say which record type to read.
        AccessError, SystemUnavailable: the system refuses or does not answer.
    """
    with closing(hook_for(source)) as hook:
        typed, rows = _typed(hook, source)
        verdicts = _retention(hook, source, window_length)
        if verdicts is None:
            return SourceFacts(typed, rows, None)
        in_time, after_outage = verdicts
        return SourceFacts(typed, rows, after_outage, is_in_time=in_time.risk != "loss")


def _typed(hook: StreamHook, source: Source) -> tuple[Source, str]:
    given = payloads_of(source).get("value")
    if given is not None and not isinstance(given, Auto | Registry):
        if isinstance(given, ChangePayload):
            return source, f"Changes of database tables, as {type(given).__name__} writes them."
        return source, f"Values are decoded as {given.format}."
    by_schema = _by_schema(source)
    if by_schema is None:
        return source, "Values are not decoded: give the rows columns with value=Json(..), Avro(..) or Registry(..)."
    found = hook.schemas(by_schema)
    lacking = [name for name, versions in found.items() if not versions]
    if lacking or not found:
        return source, "There is no schema, so values are bytes: value=Json(..) or Avro(..) gives the rows columns."
    payloads = payloads_of(by_schema)
    value = payloads["value"]
    if isinstance(value, Auto | Registry):
        types_of(found, value, payloads.get("key"))
    return by_schema, " ".join(_described(name, versions) for name, versions in found.items())


def _by_schema(source: Source) -> Source | None:
    """The source with values decoded by its system's schemas; None: the system keeps none."""
    if payloads_of(source).get("value") is not None:
        return source
    if not issubclass(load_system(source.system), SchemaKeeper):
        return None
    try:
        return decoded_source(source, {"value": Auto()})
    except (InvalidRequest, InvalidSchema):
        return None


def _described(name: str, versions: Sequence[SchemaVersion]) -> str:
    newest = versions[-1]
    try:
        return described(name, newest.version, newest.kind, StructOf(columns(newest.row_type)))
    except InvalidSchema as error:
        return f"{name}, schema version {newest.version} ({newest.kind}), cannot be read: {as_sentence(error.reason)}"


def described(name: str, version: str, kind: str, rows: StructOf) -> str:
    """The columns that a version of a schema gives, as a sentence."""
    return f"{name}, schema version {version} ({kind}): {ddl(rows)}"


def _retention(hook: StreamHook, source: Source, window_length: timedelta) -> tuple[Verdict, Verdict] | None:
    """Whether each window is read in time if the next run reads it, and after an outage; None: not known."""
    try:
        holding = hook.holding(source, None, list)
    except InvalidRequest:
        return None  # a system without such rules, or without a way to ask for them
    now = datetime.now(UTC)
    in_time, after_outage = (judge(holding, Schedule.of(window_length, one), now) for one in (window_length, OUTAGE))
    return in_time, after_outage
