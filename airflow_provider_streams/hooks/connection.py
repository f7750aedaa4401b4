"""A connection becomes settings, in one documented order: what all hooks of this package share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks import secret_places
from airflow_provider_streams.hooks.settings import (
    CONNECTION,
    Layer,
    Setting,
    environment,
    given_values,
    layer,
    resolve,
)
from airflow_provider_streams.redaction import on_secret, remember

if TYPE_CHECKING:
    from airflow.sdk import Connection

    from airflow_provider_streams.systems.option import Option

on_secret(secret_places.mask)


class ConnectionHook(BaseHook):
    """A connection whose settings are known options.

    Each option comes from the first of these that names it: the argument `options`, the connection (its extras, then
    its fields), the environment (see `hooks.settings`), its default. The default connection (`pravega_default`) need
    not exist, if arguments or the environment say enough.

    Args:
        conn_id: the Airflow connection.
        kind: of the connection, its type.
        known: its options.
        options: settings that win over the connection's.
        default_name: of the default connection; by default `<kind>_default`.
    """

    exclusive_options: ClassVar[frozenset[str]] = frozenset()
    """Options of which only one may be set: the first layer that names one of them decides."""

    def __init__(
        self,
        conn_id: str,
        *,
        kind: str,
        known: tuple[Option, ...],
        options: Mapping[str, str] | None = None,
        default_name: str = "",
    ) -> None:
        super().__init__()
        self.conn_id, self.kind = conn_id, kind
        self._known = known
        self._default_name = default_name or f"{kind}_default"
        self._given = dict(options or {})

    def options(self) -> dict[str, str]:
        """Its settings, secrets included; every secret is masked in Airflow's logs from here on.

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
        """Every option with its value and where that comes from; secrets as in `options`.

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
        if self.conn_id != self._default_name or not (self._given or any(environment(self.kind, self._known))):
            raise self._no_connection() from error
        return []

    def _resolve(self, connection: Iterable[Layer]) -> dict[str, Setting]:
        layers = (layer(self._given, "argument"), *connection, *environment(self.kind, self._known))
        return resolve(self._known, layers, self.exclusive_options)

    def _no_connection(self) -> InvalidRequest:
        return InvalidRequest(
            f"connection {self.conn_id!r} does not exist: add it under Admin, Connections, "
            f"or with `airflow connections add {self.conn_id} --conn-type {self.kind} ..`"
        )


def _secrets(settings: Mapping[str, Setting]) -> list[str]:
    return [setting.value for setting in settings.values() if setting.option.secret and setting.value]
