"""A connection becomes settings, in one documented order: what all hooks of this package share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.providers.common.compat.sdk import AirflowNotFoundException
from airflow.sdk import BaseHook

from airflow_provider_streams.airflow_features import amask_secret, supervisor_turn
from airflow_provider_streams.connections import allowed_secret_sources
from airflow_provider_streams.connections.extra import aextra_of, extra_of
from airflow_provider_streams.connections.missing_connection import no_connection
from airflow_provider_streams.connections.settings import (
    CONNECTION,
    Given,
    Layer,
    Setting,
    check_agreement,
    check_environment,
    check_environment_addresses,
    environment,
    given_values,
    layer,
    resolve,
)
from airflow_provider_streams.connections.unused_settings import refuse_fields
from airflow_provider_streams.errors import InvalidRequest, foreseen
from airflow_provider_streams.model.name_suggestion import hint_for
from airflow_provider_streams.redaction import on_secret, remember
from airflow_provider_streams.systems.connection.address import Parts, address_of, check_type

if TYPE_CHECKING:
    from airflow.sdk import Connection

    from airflow_provider_streams.systems.connection.address import AddressRules
    from airflow_provider_streams.systems.connection.option import Option

on_secret(allowed_secret_sources.mask)


class ConnectionHook(BaseHook):
    """A connection whose settings are known options.

    Each option comes from the first of these that names it: the argument `options`, the connection (its extras, then
    its fields), the environment (see `connections.settings`), its default. The default connection (`pravega_default`)
    need not exist, if arguments or the environment say enough.

    Args:
        conn_id: the Airflow connection.
        kind: of the connection, its type.
        known: its options.
        options: settings that win over the connection's.
        default_name: of the default connection; by default `<kind>_default`.
        unused_fields: its fields (`login`) that must be empty, and where their content belongs.
        address: how its address is written; None: its fields hold none.
    """

    exclusive_options: ClassVar[frozenset[str]] = frozenset()
    """Options of which only one may be set: the first layer that names one of them decides."""
    option_fields: ClassVar[Mapping[str, str]] = {}
    """Which option each of the connection's own fields holds (`schema`: `scope`), its address not among them."""

    def __init__(
        self,
        conn_id: str,
        *,
        kind: str,
        known: tuple[Option, ...],
        options: Mapping[str, str] | None = None,
        default_name: str = "",
        unused_fields: Mapping[str, str] | None = None,
        address: AddressRules | None = None,
    ) -> None:
        super().__init__()
        self.conn_id, self.kind = conn_id, kind
        self._known = known
        self._unused_fields = unused_fields or {}
        self._address = address
        self._default_name = default_name or f"{kind}_default"
        self._given = dict(options or {})
        check_names(known, self._given, f"options of a {kind!r} hook: option")

    def options(self) -> dict[str, str]:
        """Its settings, secrets included; every secret is masked in Airflow's logs from here on.

        Raises:
            InvalidRequest: the connection does not exist, is of another type, has an extra that is no option or a field
                that is not used, or names a file or a variable that it may not.
        """
        with foreseen():
            settings = self.settings()
            allowed_secret_sources.admit(settings)
        return given_values(settings)

    async def aoptions(self) -> dict[str, str]:
        """As `options`, for an event loop."""
        with foreseen():
            settings = await self._asettings()
            allowed_secret_sources.admit(settings)
        return given_values(settings)

    async def _asettings(self) -> dict[str, Setting]:
        try:
            connection = await self.aget_connection(self.conn_id)
            layers = self._of_connection(connection, await aextra_of(connection))
        except AirflowNotFoundException as error:
            layers = self._without_connection(error)
        settings = self._resolve(layers)
        check_environment_addresses(settings, self._address)
        for secret in _secrets(settings):
            remember(secret)
            await amask_secret(secret)
        return settings

    def settings(self) -> dict[str, Setting]:
        """Every option with its value and where that comes from; secrets as in `options`.

        Raises:
            InvalidRequest: the connection does not exist, is of another type, or has an extra that is no option or a
                field that is not used.
        """
        try:
            with supervisor_turn():
                connection = self.get_connection(self.conn_id)
            layers = self._of_connection(connection, extra_of(connection))
        except AirflowNotFoundException as error:
            layers = self._without_connection(error)
        settings = self._resolve(layers)
        check_environment_addresses(settings, self._address)
        for secret in _secrets(settings):
            remember(secret)
            allowed_secret_sources.mask(secret)
        return settings

    def refusal(self) -> str:
        """Why its settings cannot be used; empty: they can. Nothing is opened or asked."""
        try:
            self._check()
        except InvalidRequest as error:
            return str(error)
        return ""

    def _check(self) -> None:
        """Raises what using the settings would raise."""
        self.options()

    def _of_connection(self, connection: Connection, extra: Mapping[str, object]) -> list[Layer]:
        self._check_type(connection)
        check_names(self._known, extra, f"connection {self.conn_id!r} of type {self.kind!r}: extra")
        refuse_fields(connection, self._unused_fields, self.kind)
        origin = f"{CONNECTION} {self.conn_id},"
        extras = layer(extra, f"{origin} extra")
        fields = {
            option: Given(getattr(connection, name), f"{origin} field {name}")
            for name, option in self.option_fields.items()
        }
        check_agreement(self.conn_id, self._known, extras, fields, self.exclusive_options)
        return self._with_address(connection, [extras, fields])

    def _check_type(self, connection: Connection) -> None:
        if self._address is not None:
            check_type(_parts(connection), self._address)
        elif connection.conn_type not in (None, "", self.kind):
            raise InvalidRequest(
                f"connection {self.conn_id!r} is of type {connection.conn_type!r}, but one of type {self.kind!r} is "
                "needed here: name another connection, or correct its type"
            )

    def _with_address(self, connection: Connection, layers: list[Layer]) -> list[Layer]:
        """With the address of a connection's fields, or their port in an extra's; an argument's wins over all of it."""
        if (rules := self._address) is None:
            return layers
        settings = self._resolve(layers)
        given = settings[rules.option]
        if given.is_given and given.origin.startswith("argument"):
            return layers
        # where there is a host, it wins over the environment
        counts = given.is_of_connection or (given.is_given and not connection.host)
        protected = [_where(settings[name]) for name in rules.protected if settings[name].is_given]
        parts = _parts(connection)
        if counts:
            place = f"extra {rules.option}" if given.is_of_connection else given.origin
            parts = parts._replace(whole=given.value, place=place)
        found = address_of(parts, rules, protected)
        if counts:
            return [{rules.option: Given(found, given.origin)}, *layers]
        return [*layers, layer({rules.option: found}, f"{CONNECTION} {self.conn_id}, field of")]

    def _without_connection(self, error: AirflowNotFoundException) -> list[Layer]:
        """No layers, where the connection is not needed.

        Raises:
            InvalidRequest: a connection of this name was meant, or nothing else says anything.
        """
        check_environment(self.kind, self._known, self.option_fields)
        if self.conn_id != self._default_name or not (self._given or any(environment(self.kind, self._known))):
            raise no_connection(
                self.conn_id,
                (self.kind, "") if self._address is None else self._address.accepted_types,
                "add it under Admin, Connections, "
                f"or with `airflow connections add {self.conn_id} --conn-type {self.kind} ..`",
            ) from error
        return []

    def _resolve(self, connection: Iterable[Layer]) -> dict[str, Setting]:
        check_environment(self.kind, self._known, self.option_fields)
        layers = (layer(self._given, "argument"), *connection, *environment(self.kind, self._known))
        return resolve(self._known, layers, self.exclusive_options)


def _parts(connection: Connection) -> Parts:
    return Parts(
        str(connection.conn_id), connection.conn_type, connection.host, connection.port, schema=connection.schema
    )


def _where(setting: Setting) -> str:
    """The place of a setting, for a person."""
    return setting.place if "field " in setting.place else f"{setting.option.name} ({setting.origin})"


def check_names(known: Iterable[Option], given: Mapping[str, Any], what: str) -> None:
    """Refuse a name that is no option: a mistyped setting would be left out, a restriction among them.

    Args:
        known: the options.
        given: what was written; empty values count as not given.
        what: where, and what it is called there.

    Raises:
        InvalidRequest: with the nearest name; it shows no value.
    """
    names = {name.lower() for option in known for name in (option.name, *option.aliases)}
    for name, value in given.items():
        if name.lower() not in names and value not in (None, ""):
            hint = hint_for(name, [option.name for option in known])
            raise InvalidRequest(f"{what} {name!r} is not known; {hint}")


def _secrets(settings: Mapping[str, Setting]) -> list[str]:
    return [setting.value for setting in settings.values() if setting.option.secret and setting.value]
