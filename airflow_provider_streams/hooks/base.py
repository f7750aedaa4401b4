"""What the hooks of all stream systems share: what a connection is asked about its sources."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_streams.errors import InvalidRequest, StreamsError, WindowNotReady
from airflow_provider_streams.hooks.connection import ConnectionHook
from airflow_provider_streams.hooks.journal import aopen_journal, open_journal
from airflow_provider_streams.model.basis import EventTime, RecordedCuts
from airflow_provider_streams.model.readiness import Readiness
from airflow_provider_streams.systems.registry import declaration_of, load, load_system
from airflow_provider_streams.systems.schemas import SchemaKeeper
from airflow_provider_streams.windows.readiness import WindowQuestion, check_planned, check_recorded
from airflow_provider_streams.windows.sightings import look

if TYPE_CHECKING:
    from airflow_provider_streams.model.cut import Cut
    from airflow_provider_streams.model.hold import Hold, HoldRequest
    from airflow_provider_streams.model.retention import Holding
    from airflow_provider_streams.model.sighting import Sighting
    from airflow_provider_streams.model.source import Source
    from airflow_provider_streams.systems.base import StreamSystem
    from airflow_provider_streams.systems.conditions import Condition
    from airflow_provider_streams.systems.schemas import Check, Compatibility, OfferedSchema, Versions

Sampled = list[tuple[datetime, "Cut"]]
"""When cuts were sampled, and the cuts."""


class StreamHook(ConnectionHook):
    """A connection to a stream system.

    Args:
        conn_id: the Airflow connection.
        system: which row of `systems.registry.SYSTEMS`.
        options: settings that win over the connection's.
    """

    holds_by_time: ClassVar[bool] = False
    """Whether a hold can start at a time; otherwise it starts at a cut."""

    def __init__(self, conn_id: str, *, system: str, options: Mapping[str, str] | None = None) -> None:
        super().__init__(conn_id, kind=system, known=declaration_of(system).options, options=options)
        self.system_name = system

    def of_source(self, source: Source) -> None:
        """Which source it is asked about, for what planning it needs beside the connection's settings."""

    def planning_options(self) -> dict[str, str]:
        """As `options`, with what only planning needs: Spark's tasks are not sent that."""
        return self.options()

    async def aplanning_options(self) -> dict[str, str]:
        """As `planning_options`, for an event loop."""
        return await self.aoptions()

    def system(self) -> StreamSystem:
        """The system behind the connection; it connects when used."""
        return self._system_class().from_options(self.planning_options())

    async def asystem(self) -> StreamSystem:
        """As `system`, for an event loop."""
        return self._system_class().from_options(await self.aplanning_options())

    def readiness(self, question: WindowQuestion) -> Readiness:
        """Whether a window's end is certain.

        Raises:
            AccessError, SystemUnavailable: the system refuses or does not answer.
        """
        if early := question.early(datetime.now(UTC)):
            return question.not_yet(early)
        try:
            self._check_ready(question)
        except WindowNotReady as not_ready:
            return question.not_yet(not_ready.reason)
        return question.yes()

    async def areadiness(self, question: WindowQuestion) -> Readiness:
        """As `readiness`, for an event loop."""
        if early := question.early(datetime.now(UTC)):
            return question.not_yet(early)
        try:
            await self._acheck_ready(question)
        except WindowNotReady as not_ready:
            return question.not_yet(not_ready.reason)
        return question.yes()

    def _check_ready(self, question: WindowQuestion) -> None:
        """Raises WindowNotReady; a system that can tell without a whole plan overrides it."""
        if isinstance(question.basis, RecordedCuts):
            with open_journal() as journal:
                return check_recorded(journal, question, question.basis)
        with closing(self.system()) as system:
            if not isinstance(question.basis, EventTime):
                return check_planned(system, question)
            with open_journal() as journal:
                return check_planned(system, question, journal)

    async def _acheck_ready(self, question: WindowQuestion) -> None:
        """As `_check_ready`; a system with a native asynchronous answer overrides it."""
        if isinstance(question.basis, RecordedCuts):
            with closing(await aopen_journal()) as journal:
                return await asyncio.to_thread(check_recorded, journal, question, question.basis)
        with closing(await self.asystem()) as system:
            if not isinstance(question.basis, EventTime):
                return await asyncio.to_thread(check_planned, system, question)
            with closing(await aopen_journal()) as journal:
                return await asyncio.to_thread(check_planned, system, question, journal)

    def check(self, source: Source, condition: Condition) -> Readiness:
        """Whether a condition of the system's `conditions.py` is met now.

        Raises:
            InvalidRequest: the system has no conditions.
            AccessError, SystemUnavailable: the system refuses or does not answer.
        """
        raise self._cannot(f"wait for {condition} of {source}")

    async def acheck(self, source: Source, condition: Condition) -> Readiness:
        """As `check`, for an event loop; the condition is the same one at each poll."""
        raise self._cannot(f"wait for {condition} of {source}")

    def schemas(self, source: Source) -> Versions:
        """Every version of the schemas of a source's payloads, by its names, the oldest first.

        Raises:
            InvalidRequest: the system keeps none.
            AccessError, SystemUnavailable: the system refuses or does not answer.
        """
        with closing(self.system()) as system:
            if not isinstance(system, SchemaKeeper):
                raise self._cannot(f"tell the schemas of {source}")
            return system.schemas(source)

    def check_schema(
        self, source: Source, offered: OfferedSchema, check: Check = "write", policy: str | None = None
    ) -> Compatibility:
        """Whether a schema fits those that a source has; changes nothing.

        Args:
            source: what is written to, or read.
            offered: the schema.
            check: whether events of it may be written, or what is written can be read with it.
            policy: another one than the source's own.

        Raises:
            InvalidRequest: the system keeps no schemas, or cannot check it so.
            AccessError, SystemUnavailable: the system refuses or does not answer.
        """
        raise self._cannot(f"check {offered.shown} for {check} ({policy}) of {source}")

    def place_hold(self, request: HoldRequest) -> dict[str, Any]:
        """A hold from a place on; one that is there already stays where it stands.

        Returns:
            `hold, placed, cut` as plain JSON values.

        Raises:
            InvalidRequest: the system cannot hold such a source, or from such a place.
            StartTrimmed: retention has passed the place.
        """
        raise self._cannot(f"hold {request.source}")

    def move_hold(self, request: HoldRequest) -> dict[str, Any]:
        """The hold stands at the place, or further already: it never moves back.

        Returns:
            `hold, moved, cut` as plain JSON values.

        Raises:
            SourceNotFound: there is no such hold.
        """
        raise self._cannot(f"hold {request.source}")

    def release_hold(self, source: Source, name: str, reader: str) -> dict[str, Any]:
        """No such hold on the source.

        Returns:
            `hold, released` as plain JSON values.

        Raises:
            InvalidRequest: the hold of this name is another reader's, where the system keeps that.
        """
        raise self._cannot(f"hold {source}, so not release {name} of {reader}")

    def holds(self, source: Source, readers: Iterable[str] = ()) -> tuple[Hold, ...]:  # noqa: ARG002 - none
        """Every hold on a source.

        Args:
            source: what is held.
            readers: those that the journal knows of it, for systems that do not keep a hold's reader.

        Raises:
            AccessError, SystemUnavailable: the system refuses or does not answer.
        """
        return ()

    def holding(self, source: Source, reader: str | None, recorded: Callable[[], Sampled]) -> Holding:  # noqa: ARG002
        """How the system holds a source's events.

        Args:
            source: what is held.
            reader: whose holds count; None: anyone's.
            recorded: its recorded cuts, oldest first, for systems whose events carry no time; asked only by these.

        Raises:
            InvalidRequest: that cannot be asked for.
            AccessError, SystemUnavailable: the system refuses or does not answer.
        """
        raise InvalidRequest(f"the retention of a {source.system} source cannot be asked for")

    async def aholding(
        self,
        source: Source,
        reader: str | None,  # noqa: ARG002 - for systems that tell
        recorded: Callable[[], Awaitable[Sampled]],  # noqa: ARG002 - the same
    ) -> Holding:
        """As `holding`, for an event loop."""
        raise InvalidRequest(f"the retention of a {source.system} source cannot be asked for")

    def look(self, source: Source) -> None:
        """Note in the journal where a source ends now; failures are logged."""
        try:
            with open_journal() as journal, closing(self.system()) as system:
                look(journal, system, source)
        except StreamsError as error:
            self.log.info("%s was not looked at: %s", source, error)

    async def alook(self, source: Source) -> None:
        """As `look`, for an event loop."""
        try:
            with closing(await aopen_journal()) as journal:
                if not await asyncio.to_thread(journal.is_seen_about, source.key, datetime.now(UTC)):
                    seen = await self._asighting(source)
                    await asyncio.to_thread(journal.note_sighting, source.key, seen)
        except StreamsError as error:
            self.log.info("%s was not looked at: %s", source, error)

    async def _asighting(self, source: Source) -> Sighting:
        """See `StreamSystem.look`; a system with a native asynchronous answer overrides it."""
        await asyncio.to_thread(self._system_class)  # its packages take a second to load, which the loop must not
        with closing(await self.asystem()) as system:
            return await asyncio.to_thread(system.look, source)

    def close(self) -> None:
        """Close what blocking calls opened."""

    async def aclose(self) -> None:
        """Close what asynchronous calls opened."""

    def _system_class(self) -> type[StreamSystem]:

        return load_system(self.system_name)

    def full_names(self, names: list[str]) -> list[str]:
        """The names of a source, where a person may leave out what the connection says."""
        return names

    def _cannot(self, act: str) -> InvalidRequest:
        return InvalidRequest(f"{type(self).__name__} cannot {act}: {self.system_name} does not offer it")


def hook_for(source: Source) -> StreamHook:
    """The hook of a source's connection."""
    hook = hook_of(source.system, source.conn_id)
    hook.of_source(source)
    return hook


def hook_of(system: str, conn_id: str) -> StreamHook:
    """The hook of a system's connection."""
    path = declaration_of(system).hook
    if path is None:
        return StreamHook(conn_id, system=system)
    hook: StreamHook = load(path)(conn_id)
    return hook
