"""The options of `spark.read.format(..)`: our names, the systems' names, and other connectors' names of them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow_provider_streams.errors import InvalidRequest, InvalidWindow, PlanMismatch
from airflow_provider_streams.model.name_suggestion import nearest_name
from airflow_provider_streams.model.plan.plan import DEFAULT_SPLIT_BYTES, OnLoss, OnUnproven, Plan, PlanRequest
from airflow_provider_streams.model.schema.decode_errors import DecodeErrorPolicy
from airflow_provider_streams.model.schema.payload_options import PAYLOAD_FLAGS, PAYLOAD_PARTS, payload_of_options
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.window.basis import EventTime
from airflow_provider_streams.model.window.window import EPOCH, Window, length_of_seconds, utc_moment
from airflow_provider_streams.spark.datasource.option_redaction import unmask_secret
from airflow_provider_streams.spark.datasource.read_options import SplitReadOptions
from airflow_provider_streams.systems.base import StreamSystem
from airflow_provider_streams.systems.connection.endpoint_fields import flag
from airflow_provider_streams.systems.connection.option import Option
from airflow_provider_streams.systems.explicit_cuts import start_of
from airflow_provider_streams.systems.registry import declaration_of, known
from airflow_provider_streams.systems.source_json import decoded_source

RECEIPT_COLUMN = "_receipt"
"""The extra column of option `receipt`: null in the rows of events, JSON in one last row per split."""

READ_OPTIONS: tuple[Option, ...] = (
    Option("plan", "a plan, as JSON or as the path of a file with it; replaces every option about what to read"),
    Option(
        "window_start", "the window's first moment, ISO 8601 with offset, or milliseconds", aliases=("startingTime",)
    ),
    Option("window_end", "the first moment after the window", aliases=("endingTime",)),
    Option(
        "start_cut",
        "earliest, or positions by shard as JSON; default without a window: earliest",
        aliases=("startingOffsets", "startingCut", "start_stream_cut"),
    ),
    Option(
        "end_cut",
        "latest, or positions by shard as JSON; default without a window: latest, fixed when the DataFrame is loaded",
        aliases=("endingOffsets", "endingCut", "end_stream_cut"),
    ),
    Option("basis", "publish, append, event or cuts; default: publish with a window, else cuts"),
    Option("slack_seconds", "how far around the window events are looked for (bases publish and event)", "60"),
    Option("allowed_lateness_seconds", "basis event: how much later than its own time an event may be stored", "600"),
    Option("event_time", "basis event: the field of decoded values that is the time; default: the broker's event time"),
    Option("event_time_field_unit", "basis event: what a field of whole numbers counts since 1970: s, ms, us or ns"),
    Option("rows", "basis event, Pravega: superset reads all around the window, for you to filter", "exact"),
    Option("columns", "comma separated; default: the system's default columns"),
    Option("target_split_bytes", "what one Spark task reads", str(DEFAULT_SPLIT_BYTES)),
    Option("on_loss", "fail, or record: read what is left", "fail"),
    Option("fail_on_data_loss", "the same as other connectors say it", aliases=("failOnDataLoss",)),
    Option("on_unproven", "land, or fail: if nothing proves that the start is complete", "land"),
    Option(
        "value_format",
        "what values are: auto, bytes, utf8, json, avro, protobuf or registry; changes of a database: debezium, "
        "canal or maxwell; default: not decoded",
    ),
    Option(
        "value_schema",
        "json: columns like 'id long, name string'; avro: its JSON; protobuf: name:descriptor set; debezium, canal, "
        "maxwell: columns that no message tells",
    ),
    Option("value_type", "auto, registry: the one record type to read; several names of it, comma separated"),
    Option("value_types", "auto, registry: all reads every record type, and adds the column _type"),
    Option("value_version", "auto, registry: the version of the schema that gives the columns; default: the newest"),
    Option("value_placeholder", "debezium: the connector's unavailable.value.placeholder"),
    Option("value_as_text", "auto, registry: true reads fields as text that no type holds for all versions", "false"),
    Option(
        "value_refuse_unmatched", "auto, json, registry: true makes an object bad that has keys of no column", "false"
    ),
    Option("key_format", "what keys are; words as for value_format"),
    Option("key_schema", "the schema of keys; written as for value_schema"),
    Option("on_decode_error", "fail, drop, or quarantine: write such events to quarantine_path", "fail"),
    Option("quarantine_path", "a folder that driver and executors mount, for on_decode_error=quarantine"),
    Option("reader", "the name in error messages and plans", "spark"),
    Option("receipt", "true adds the column _receipt: JSON in one extra row per split", "false"),
)

_LOSSES: dict[bool, OnLoss] = {True: "fail", False: "record"}
_MILLISECONDS = re.compile(r"^\d{12,14}$")


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options of one `load()`, by their own names."""

    read: dict[str, str]
    system: dict[str, str] = field(repr=False)
    """For `StreamSystem.from_options` and `.source`: may hold secrets."""

    @classmethod
    def parse(cls, system: type[StreamSystem], given: Mapping[str, str]) -> ReadOptions:
        """The user's options; case in names is ignored. `InvalidRequest`: an unknown name, or one given twice."""
        declared = declaration_of(system.name)
        settings = (*declared.options, *declared.source_options)
        names = _names(settings) | _names(READ_OPTIONS)
        found: dict[str, str] = {}
        for name, value in given.items():
            if name.lower() in declared.passed_over:
                continue
            own = names.get(name.lower())
            if own is None:
                raise InvalidRequest(f"format {system.name!r} has no option {name!r}; {_hint(name, system, names)}")
            if found.setdefault(own, unmask_secret(value)) != unmask_secret(value):
                raise InvalidRequest(f"option {own!r} is given twice, under two names")
        ours = {option.name for option in READ_OPTIONS}
        return cls(
            {name: value for name, value in found.items() if name in ours},
            {name: value for name, value in found.items() if name not in ours},
        )

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The requested columns; None: the default ones."""
        text = self.read.get("columns", "")
        return tuple(name.strip() for name in text.split(",") if name.strip()) or None

    @property
    def receipt(self) -> bool:
        """Whether each split adds its receipt as a row."""
        return flag("receipt", self.read.get("receipt", "false"))

    @property
    def on_loss(self) -> OnLoss:
        """What to do about events that are gone."""
        text, other = self.read.get("on_loss"), self.read.get("fail_on_data_loss")
        theirs = None if other is None else _LOSSES[flag("fail_on_data_loss", other)]
        if text not in (None, "fail", "record"):
            raise InvalidRequest(f"on_loss is fail or record, not {text!r}")
        if text is not None and theirs is not None and text != theirs:
            raise InvalidRequest(f"on_loss is {text}, but fail_on_data_loss={other} says {theirs}: give one of them")
        return "record" if "record" in (text, theirs) else "fail"

    @property
    def split_read_options(self) -> SplitReadOptions:
        """How splits are read."""
        policy = DecodeErrorPolicy(self.read.get("on_decode_error") or "fail")  # type: ignore[arg-type]  # it is checked there
        folder = self.read.get("quarantine_path")
        if policy.then == "quarantine" and not folder and not self.receipt:
            raise InvalidRequest("on_decode_error=quarantine needs a folder for these events: quarantine_path")
        return SplitReadOptions(self.columns, self.on_loss, policy, folder)

    @property
    def on_unproven(self) -> OnUnproven:
        """What to do if events may have been removed before a plan first saw the stream."""
        text = self.read.get("on_unproven", "land")
        if text not in ("land", "fail"):
            raise InvalidRequest(f"on_unproven is land or fail, not {text!r}")
        return "fail" if text == "fail" else "land"

    def plan(self, system: StreamSystem) -> Plan:
        """The given plan, or one resolved now.

        Raises:
            InvalidRequest: half a window, or a basis without one.
            PlanMismatch: the plan is not one, of another system, or of another incarnation of its source.
            StreamsError: the system's planner refuses.
        """
        text = self.read.get("plan")
        if text is None:
            return system.plan(self._request(system))
        plan = load_plan(text)
        if plan.source.system != system.name:
            raise PlanMismatch(f"the plan reads {plan.source.system}, but the format is {system.name}")
        if not self.receipt:  # a job that wants receipts has checked this before it began
            system.check_origin(plan)
        return plan

    def _request(self, system: StreamSystem) -> PlanRequest:
        source = self._source(system)
        start, end = self.read.get("start_cut"), self.read.get("end_cut")
        by_cuts = start is not None or end is not None or self._is_unbounded
        for name, text in (("start_cut", start), ("end_cut", end)):
            if text is not None and not text.strip():
                raise InvalidRequest(f"the option {name} is empty: give a cut, or leave it out")
        basis = self.read.get("basis") or ("cuts" if by_cuts else "publish")
        if basis not in ("publish", "append", "event", "cuts"):
            raise InvalidRequest(f"basis is publish, append, event or cuts here, not {basis!r}")
        return PlanRequest(
            source,
            self._window(by_cuts=by_cuts),
            self.read.get("reader") or "spark",
            basis=basis,  # type: ignore[arg-type]  # checked above
            slack=length_of_seconds("slack_seconds", self.read.get("slack_seconds", "60")),
            event=self._event_time(source.system),
            start_cut=_start(system, source, start, basis) if by_cuts else None,
            end_cut=system.parse_cut(source, _cut_text("latest" if end is None else end)) if by_cuts else None,
            on_loss=self.on_loss,
            on_unproven=self.on_unproven,
            target_split_bytes=_whole("target_split_bytes", self.read.get("target_split_bytes") or DEFAULT_SPLIT_BYTES),
        )

    def _event_time(self, system: str) -> EventTime:
        lateness = length_of_seconds("allowed_lateness_seconds", self.read.get("allowed_lateness_seconds", "600"))
        event = EventTime(
            lateness,
            event_time=self.read.get("event_time"),
            unit=self.read.get("event_time_field_unit"),  # type: ignore[arg-type]  # it checks both
            rows=self.read.get("rows", "exact"),  # type: ignore[arg-type]
        )
        if self.read.get("basis") == "event":
            declaration_of(system).check_basis(event)
        return event

    def _source(self, system: StreamSystem) -> Source:
        source = system.source(self.system)
        asked = {
            what: payload_of_options(what, {part: self._part(f"{what}_{part}", part) for part in PAYLOAD_PARTS})
            for what in ("value", "key")
        }
        return decoded_source(source, {what: payload for what, payload in asked.items() if payload is not None})

    def _part(self, name: str, part: str) -> str | bool | None:
        """An option of a payload: flags as booleans, others as text or None."""
        return flag(name, self.read.get(name, "false")) if part in PAYLOAD_FLAGS else self.read.get(name)

    @property
    def _is_unbounded(self) -> bool:
        """Whether no option bounds the read, so that it is of all that is stored at planning."""
        bounds = ("window_start", "window_end", "start_cut", "end_cut")
        return self.read.get("basis") in (None, "", "cuts") and not any(self.read.get(name) for name in bounds)

    def _window(self, *, by_cuts: bool) -> Window:
        start, end = self.read.get("window_start"), self.read.get("window_end")
        if start and end:
            return Window(_moment("window_start", start), _moment("window_end", end))
        if by_cuts and not start and not end:
            return Window(EPOCH, datetime.now(UTC))
        raise InvalidRequest(
            "say what to read: window_start and window_end, or start_cut and end_cut, or a plan; without any of these, "
            "and without a basis, all that is stored is read"
        )


def load_plan(text: str) -> Plan:
    """A plan from its JSON, or from the path of a file with it. `PlanMismatch`: it is none."""
    try:
        content = text if text.lstrip().startswith("{") else Path(text.removeprefix("file://")).read_text()
        return Plan.from_json(json.loads(content))
    except OSError as error:
        raise PlanMismatch(f"the plan cannot be read from its file: {error}") from error
    except json.JSONDecodeError as error:
        raise PlanMismatch(f"the plan is not JSON: {error}") from error


def _hint(name: str, system: type[StreamSystem], names: Mapping[str, str]) -> str:
    """What to write in place of an unknown option, among `names`: their own names by every spelling."""
    if name.lower() == "path":
        return (
            f"load() takes no path: name what to read by option {declaration_of(system.name).source_options[0].name!r}"
        )
    for other in known():
        if other != system.name and name.lower() in _names(declaration_of(other).source_options):
            return f"it is one of format {other!r}"
    near = nearest_name(name, names)
    return f"did you mean {names[near]!r}?" if near else f"known: {', '.join(sorted(set(names.values())))}"


def _names(options: tuple[Option, ...]) -> dict[str, str]:
    return {name.lower(): option.name for option in options for name in (option.name, *option.aliases)}


def _start(system: StreamSystem, source: Source, text: str | None, basis: str) -> Cut | None:
    start = start_of(system, source, None if text is None else _cut_text(text))
    # between recorded cuts, a shard that the first one does not name is read from its beginning
    return Cut({}) if start is None and basis == "append" else start


def _cut_text(text: str) -> str | dict[str, str]:
    if not text.lstrip().startswith("{"):
        return text
    try:
        return {str(shard): str(position) for shard, position in json.loads(text).items()}
    except json.JSONDecodeError as error:
        raise InvalidRequest(f"a cut is earliest, latest, or a JSON object of positions by shard ({error})") from error


def _moment(name: str, text: str) -> datetime:
    if _MILLISECONDS.match(text):
        return EPOCH + timedelta(milliseconds=int(text))
    try:
        return utc_moment(text)
    except InvalidWindow as error:
        raise InvalidWindow(
            f"{name} is an ISO 8601 time with an offset, or milliseconds since 1970 ({error})"
        ) from error


def _whole(name: str, text: str | int) -> int:
    try:
        return int(float(text))
    except (ValueError, OverflowError) as error:
        raise InvalidRequest(f"{name} is a finite number, not {text!r}") from error
