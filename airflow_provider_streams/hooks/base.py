"""What the hooks of all stream systems share: a connection becomes a system's options, in one documented order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from airflow_provider_streams.errors import InvalidRequest, StreamsError, WindowNotReady
from airflow_provider_streams.hooks import secret_places
from airflow_provider_streams.hooks.journal import aopen_journal, open_journal
from airflow_provider_streams.hooks.settings import (
    CONNECTION,
    Layer,
    Setting,
    environment,
    given_values,
    layer,
    resolve,
)
from airflow_provider_streams.model.basis import RecordedCuts
from airflow_provider_streams.model.readiness import Readiness
from airflow_provider_streams.redaction import on_secret, remember
from airflow_provider_streams.systems.registry import declaration_of, load, load_system
from airflow_provider_streams.windows.readiness import WindowQuestion, check_planned, check_recorded
from airflow_provider_streams.windows.sightings import look

if TYPE_CHECKING:
    from airflow.sdk import Connection

    from airflow_provider_streams.model.cut import Cut
    from airflow_provider_streams.model.hold import Hold, HoldRequest
    from airflow_provider_streams.model.retention import Holding
    from airflow_provider_streams.model.sighting import Sighting
    from airflow_provider_streams.model.source import Source
    from airflow_provider_streams.systems.base import StreamSystem
    from airflow_provider_streams.systems.conditions import Condition
    from airflow_provider_streams.systems.option import Option

Sampled = list[tuple[datetime, "Cut"]]
"""When cuts were sampled, and the cuts."""

on_secret(secret_places.mask)


class StreamHook(BaseHook):
    """A connection to a stream system.

    Each option of the system comes from the first of these that names it: the argument `options`, the connection
    (its extras, then its fields), the environment (see `hooks.settings`), the system's default. The system's default
    connection (`pravega_default`) need not exist, if arguments or the environment say enough.

    Args:
        conn_id: the Airflow connection.
        system: which row of `systems.registry.SYSTEMS`.
        options: settings that win over the connection's.
    """

    holds_by_time: ClassVar[bool] = False
    """Whether a hold can start at a time; otherwise it starts at a cut."""
    exclusive_options: ClassVar[frozenset[str]] = frozenset()
    """Options of which only one may be set: the first layer that names one of them decides."""

    def __init__(self, conn_id: str, *, system: str, options: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.conn_id, self.system_name = conn_id, system
        self._given = dict(options or {})

    def options(self) -> dict[str, str]:
        """The system's settings, secrets included; every secret is masked in Airflow's logs from here on.

        Raises:
            InvalidRequest: the connection does not exist, or names a file or a variable that it may not.
        """
        settings = self.settings()
        secret_places.admit(settings)
        return given_values(settings)

    async def aoptions(self) -> dict[str, str]:
        """As `options`, for an event loop."""
        from airflow.sdk.log import amask_secret  # noqa: PLC0415

        try:
            connection = await self.aget_connection(self.conn_id)
            layers = self._of_connection(connection, await connection.aextra_dejson())
        except AirflowNotFoundException as error:
            layers = self._without_connection(error)
        settings = self._resolve(layers)
        for secret in _secrets(settings):
            remember(secret)
            await amask_secret(secret)
        secret_places.admit(settings)
        return given_values(settings)

    def settings(self) -> dict[str, Setting]:
        """Every option of the system with its value and where that comes from; secrets as in `options`.

        Raises:
            InvalidRequest: the connection does not exist.
        """
        try:
            connection = self.get_connection(self.conn_id)
            layers = self._of_connection(connection, connection.extra_dejson)
        except AirflowNotFoundException as error:
            layers = self._without_connection(error)
        settings = self._resolve(layers)
        for secret in _secrets(settings):
            remember(secret)
            secret_places.mask(secret)
        return settings

    def system(self) -> StreamSystem:
        """The system behind the connection; it connects when used."""
        return self._system_class().from_options(self.options())

    async def asystem(self) -> StreamSystem:
        """As `system`, for an event loop."""
        return self._system_class().from_options(await self.aoptions())

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
            return check_planned(system, question)

    async def _acheck_ready(self, question: WindowQuestion) -> None:
        """As `_check_ready`; a system with a native asynchronous answer overrides it."""
        if isinstance(question.basis, RecordedCuts):
            with closing(await aopen_journal()) as journal:
                return await asyncio.to_thread(check_recorded, journal, question, question.basis)
        with closing(await self.asystem()) as system:
            return await asyncio.to_thread(check_planned, system, question)

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

    def _known_options(self) -> tuple[Option, ...]:
        return declaration_of(self.system_name).options

    def full_names(self, names: list[str]) -> list[str]:
        """The names of a source, where a person may leave out what the connection says."""
        return names

    def _fields(self, connection: Connection) -> Mapping[str, object]:  # noqa: ARG002 - for subclasses
        """Options that the connection's own fields (host, port, password) hold."""
        return {}

    def _of_connection(self, connection: Connection, extra: Mapping[str, object]) -> list[Layer]:
        origin = f"{CONNECTION} {self.conn_id},"
        return [layer(extra, f"{origin} extra"), layer(self._fields(connection), f"{origin} field of")]

    def _without_connection(self, error: AirflowNotFoundException) -> list[Layer]:
        """No layers, where the connection is not needed.

        Raises:
            InvalidRequest: a connection of this name was meant, or nothing else says anything.
        """
        known = self._known_options()
        if self.conn_id != f"{self.system_name}_default" or not (
            self._given or any(environment(self.system_name, known))
        ):
            raise self._no_connection() from error
        return []

    def _resolve(self, connection: Iterable[Layer]) -> dict[str, Setting]:
        known = self._known_options()
        given = layer(self._given, "argument")
        layers = (given, *connection, *environment(self.system_name, known))
        return resolve(known, layers, self.exclusive_options)

    def _cannot(self, act: str) -> InvalidRequest:
        return InvalidRequest(f"{type(self).__name__} cannot {act}: {self.system_name} does not offer it")

    def _no_connection(self) -> InvalidRequest:
        return InvalidRequest(
            f"connection {self.conn_id!r} does not exist: add it under Admin, Connections, "
            f"or with `airflow connections add {self.conn_id} --conn-type {self.system_name} ..`"
        )


def _secrets(settings: Mapping[str, Setting]) -> list[str]:
    return [setting.value for setting in settings.values() if setting.option.secret and setting.value]


def hook_for(source: Source) -> StreamHook:
    """The hook of a source's connection."""
    return hook_of(source.system, source.conn_id)


def hook_of(system: str, conn_id: str) -> StreamHook:
    """The hook of a system's connection."""
    path = declaration_of(system).hook
    if path is None:
        return StreamHook(conn_id, system=system)
    hook: StreamHook = load(path)(conn_id)
    return hook
