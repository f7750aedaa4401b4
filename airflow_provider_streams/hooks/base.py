"""What the hooks of all stream systems share: questions about the sources of a connection."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_streams.connections.journal import aopen_journal, open_journal
from airflow_provider_streams.errors import InvalidRequest, StreamsError, WindowNotReady
from airflow_provider_streams.hooks.connection_hook import ConnectionHook
from airflow_provider_streams.model.window.basis import EventTime, RecordedCuts
from airflow_provider_streams.model.window.readiness import Readiness
from airflow_provider_streams.systems.registry import declaration_of, known, load, load_system
from airflow_provider_streams.systems.schemas import SchemaKeeper
from airflow_provider_streams.windows.plan.readiness import WindowQuestion, check_planned, check_recorded
from airflow_provider_streams.windows.plan.tail_observations import observe_tail

if TYPE_CHECKING:
    from airflow_provider_streams.journal.store import Journal
    from airflow_provider_streams.model.stream.cut import Cut
    from airflow_provider_streams.model.stream.hold import Hold, HoldRequest
    from airflow_provider_streams.model.stream.retention import Holding
    from airflow_provider_streams.model.stream.source import Source
    from airflow_provider_streams.model.stream.tail_observation import TailObservation
    from airflow_provider_streams.systems.base import StreamSystem
    from airflow_provider_streams.systems.conditions import Condition
    from airflow_provider_streams.systems.schemas import Check, Compatibility, OfferedSchema, Versions

Sampled = list[tuple[datetime, "Cut"]]
"""When cuts were sampled, and the cuts."""


class StreamHook(ConnectionHook):
    """A connection to a stream system.

    Whatever asks the system raises `AccessError` or `SystemUnavailable` if it refuses or does not answer. What the
    system does not offer raises `InvalidRequest`.

    Args:
        conn_id: the Airflow connection.
        system: which row of `systems.registry.SYSTEMS`.
        options: settings that win over the connection's.
    """

    holds_by_time: ClassVar[bool] = False
    """Whether a hold can start at a time; otherwise it starts at a cut."""

    def __init__(self, conn_id: str, *, system: str, options: Mapping[str, str] | None = None) -> None:
        declared = declaration_of(system)
        super().__init__(
            conn_id,
            kind=system,
            known=declared.options,
            options=options,
            unused_fields=declared.form.unused,
            address=declared.address,
        )
        self.system_name = system

    def of_source(self, source: Source) -> None:
        """Which source the questions are about: planning may need settings of its own for it."""

    def own(self, source: Source) -> Source:
        """A source that a question is about: one of this connection.

        Raises:
            InvalidRequest: it has another connection, so the answer would be about another cluster.
        """
        if source.conn_id != self.conn_id:
            raise InvalidRequest(
                f"{type(self).__name__}({self.conn_id!r}) was asked about {source}, whose conn_id is "
                f"{source.conn_id!r}: ask {type(self).__name__}({source.conn_id!r}), or give the source the conn_id "
                f"{self.conn_id!r}"
            )
        return source

    def planning_options(self) -> dict[str, str]:
        """As `options`, with what only planning needs, and Spark's tasks do not get."""
        return self.options()

    async def aplanning_options(self) -> dict[str, str]:
        """As `planning_options`, for an event loop."""
        return await self.aoptions()

    def system(self) -> StreamSystem:
        """The system of the connection; it connects when used."""
        return self._system_class().from_options(self.planning_options())

    async def asystem(self) -> StreamSystem:
        """As `system`, for an event loop."""
        return self._system_class().from_options(await self.aplanning_options())

    def readiness(self, question: WindowQuestion) -> Readiness:
        """Whether a window's end is certain."""
        self.own(question.source)
        if early := question.early(datetime.now(UTC)):
            return question.not_ready(early)
        try:
            self._check_ready(question)
        except WindowNotReady as not_ready:
            return question.not_ready(not_ready.reason)
        return question.yes()

    async def areadiness(self, question: WindowQuestion) -> Readiness:
        """As `readiness`, for an event loop."""
        self.own(question.source)
        if early := question.early(datetime.now(UTC)):
            return question.not_ready(early)
        try:
            await self._acheck_ready(question)
        except WindowNotReady as not_ready:
            return question.not_ready(not_ready.reason)
        return question.yes()

    def _check_ready(self, question: WindowQuestion) -> None:
        """Raises WindowNotReady; a system that can tell without a whole plan overrides it."""
        with ExitStack() as stack:
            journal = stack.enter_context(open_journal()) if _needs_journal(question) else None
            _check_end(question, stack.enter_context(closing(self.system())), journal)

    async def _acheck_ready(self, question: WindowQuestion) -> None:
        """As `_check_ready`; a system with a native asynchronous answer overrides it."""
        with ExitStack() as stack:
            journal = stack.enter_context(await aopen_journal()) if _needs_journal(question) else None
            system = stack.enter_context(closing(await self.asystem()))
            await asyncio.to_thread(_check_end, question, system, journal)

    def check(self, source: Source, condition: Condition) -> Readiness:
        """Whether a condition of the system's `conditions.py` is met now."""
        raise self._cannot(f"wait for {condition} of {source}")

    async def acheck(self, source: Source, condition: Condition) -> Readiness:
        """As `check`, for an event loop; the condition is the same one at each poll."""
        raise self._cannot(f"wait for {condition} of {source}")

    def schemas(self, source: Source) -> Versions:
        """Every version of the schemas of a source's payloads, by its names, the oldest first."""
        self.own(source)
        with closing(self.system()) as system:
            if not isinstance(system, SchemaKeeper):
                raise self._cannot(f"show the schemas of {source}")
            return system.schemas(source)

    def check_schema(
        self, source: Source, offered: OfferedSchema, check: Check = "write", policy: str | None = None
    ) -> Compatibility:
        """Whether a schema fits those that a source has; changes nothing.

        Args:
            source: what is written to, or read.
            offered: the schema.
            check: whether events of it may be written, or it can read what is written.
            policy: instead of the source's own.

        Raises:
            InvalidRequest: the system keeps no schemas, or cannot check it in this way.
        """
        raise self._cannot(f"check {offered.shown} for {check} ({policy}) of {source}")

    def place_hold(self, request: HoldRequest) -> dict[str, Any]:
        """Place a hold; one that exists stays where it is.

        Returns:
            `hold, placed, cut` as plain JSON values.

        Raises:
            InvalidRequest: the system cannot hold such a source, or not from such a place.
            StartTrimmed: retention has passed the place.
        """
        raise self._cannot(f"hold {request.source}")

    def move_hold(self, request: HoldRequest) -> dict[str, Any]:
        """Move a hold up to a place; it never moves back.

        Returns:
            `hold, moved, cut` as plain JSON values.

        Raises:
            SourceNotFound: there is no such hold.
        """
        raise self._cannot(f"hold {request.source}")

    def release_hold(self, source: Source, name: str, reader: str) -> dict[str, Any]:
        """Remove a hold; succeeds if there is none.

        Returns:
            `hold, released` as plain JSON values.

        Raises:
            InvalidRequest: the hold of this name belongs to another reader, if the system keeps that.
        """
        raise self._cannot(f"hold {source}, so not release {name} of {reader}")

    def holds(self, source: Source, readers: Iterable[str] = ()) -> tuple[Hold, ...]:  # noqa: ARG002 - none
        """Every hold on a source.

        Args:
            source: what is held.
            readers: those that the journal knows of it, for systems that do not keep a hold's reader.
        """
        return ()

    def holding(self, source: Source, reader: str | None, recorded: Callable[[], Sampled]) -> Holding:  # noqa: ARG002
        """How the system holds a source's events.

        Args:
            source: what is held.
            reader: whose holds count; None: anyone's.
            recorded: its recorded cuts, oldest first, for systems whose events carry no time; only these call it.
        """
        raise self._cannot(f"show the retention of {source}")

    async def aholding(
        self,
        source: Source,
        reader: str | None,  # noqa: ARG002 - for systems that tell
        recorded: Callable[[], Awaitable[Sampled]],  # noqa: ARG002 - the same
    ) -> Holding:
        """As `holding`, for an event loop."""
        raise self._cannot(f"show the retention of {source}")

    def observe_tail(self, source: Source) -> None:
        """Record in the journal where a source ends now; failures are logged."""
        self.own(source)
        try:
            with open_journal() as journal, closing(self.system()) as system:
                observe_tail(journal, system, source)
        except StreamsError as error:
            self.log.info("The tail of %s was not observed: %s", source, error)

    async def aobserve_tail(self, source: Source) -> None:
        """As `observe_tail`, for an event loop."""
        self.own(source)
        try:
            with closing(await aopen_journal()) as journal:
                if not await asyncio.to_thread(journal.is_observed_about, source.key, datetime.now(UTC)):
                    seen = await self._atail_observation(source)
                    await asyncio.to_thread(journal.note_tail_observation, source.key, seen)
        except StreamsError as error:
            self.log.info("The tail of %s was not observed: %s", source, error)

    async def _atail_observation(self, source: Source) -> TailObservation:
        """As `StreamSystem.observe_tail`; a system with a native asynchronous answer overrides it."""
        await asyncio.to_thread(self._system_class)  # its packages take a second to load, which would block the loop
        with closing(await self.asystem()) as system:
            return await asyncio.to_thread(system.observe_tail, source)

    def close(self) -> None:
        """Close what blocking calls opened."""

    async def aclose(self) -> None:
        """Close what asynchronous calls opened."""

    def _system_class(self) -> type[StreamSystem]:
        return load_system(self.system_name)

    def full_names(self, names: list[str]) -> list[str]:
        """The full names of a source, whose user may leave out what the connection says."""
        return names

    def _cannot(self, act: str) -> InvalidRequest:
        return InvalidRequest(f"{type(self).__name__} cannot {act}: {self.system_name} does not offer it")


def _needs_journal(question: WindowQuestion) -> bool:
    return isinstance(question.basis, RecordedCuts | EventTime)


def _check_end(question: WindowQuestion, system: StreamSystem, journal: Journal | None) -> None:
    if journal is not None and isinstance(question.basis, RecordedCuts):
        check_recorded(journal, system, question, question.basis)
    else:
        check_planned(system, question, journal)


def hook_for(source: Source) -> StreamHook:
    """The hook of a source's connection."""
    hook = hook_of(source.system, source.conn_id)
    hook.of_source(source)
    return hook


def connection_hook_of(kind: str, conn_id: str | None = None) -> ConnectionHook:
    """The hook of a connection to a system, or to a service next to one (`schema_registry`); None: the default one.

    Raises:
        InvalidRequest: there is no such system or service.
    """
    services = [one for system in known() for one in declaration_of(system).services if one.name == kind]
    for service in services:
        found: ConnectionHook = load(service.hook)(*([conn_id] if conn_id else []))
        return found
    return hook_of(kind, conn_id or f"{kind}_default")


def hook_of(system: str, conn_id: str) -> StreamHook:
    """The hook of a system's connection."""
    path = declaration_of(system).hook
    if path is None:
        return StreamHook(conn_id, system=system)
    hook: StreamHook = load(path)(conn_id)
    return hook
