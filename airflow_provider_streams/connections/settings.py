"""Where each setting of a connection comes from: one order for every system.

    1. argument       `options=` of a hook
    2. connection     its extras and its fields (host, port, login, password, schema), which must not differ; an address
                      in an extra wins over host and port
    3. environment    STREAMS_<SYSTEM>_<OPTION>, then the names that the system's own tools use (`Option.variables`)
    4. default        the system's

The first that names an option decides. Empty values count as not given. A variable that is nearly one of ours, or
begins as ours do, is refused. `airflow.cfg` says what a connection may name on this machine
(`connections.allowed_secret_sources`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.name_suggestion import hint_for, nearest_name
from airflow_provider_streams.redaction import redact
from airflow_provider_streams.systems import registry
from airflow_provider_streams.systems.connection.address import AddressRules, scheme_of
from airflow_provider_streams.systems.connection.contradiction import check_one_credential, contradiction
from airflow_provider_streams.systems.connection.endpoint import check_text
from airflow_provider_streams.systems.connection.endpoint_fields import without_credentials
from airflow_provider_streams.systems.connection.option import Option
from airflow_provider_streams.systems.connection.secret_references import shown_place

NOT_SET = "not set"
CONNECTION = "connection"
"""How the origins of a connection's settings begin."""
_ENVIRONMENT = "environment"
"""How the origins of the environment's begin."""
_OURS: Final = "STREAMS_"
_NEAR: Final = 0.9
_KUBERNETES: Final = re.compile(r"_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$")


class Given(NamedTuple):
    """A value that a layer holds."""

    value: object
    origin: str
    """Where it is from, for a person: `environment PRAVEGA_SCOPE`."""


Layer = Mapping[str, Given]
"""What one place says, by option name or alias; case is ignored."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What an option is, and why. Its `repr` and `shown` hold no secret."""

    option: Option
    value: str = field(repr=False)
    origin: str
    is_masked: bool = False
    """Whether it may be a secret in the wrong place."""

    @property
    def is_given(self) -> bool:
        """Whether it is more than the default."""
        return self.origin not in (NOT_SET, "default")

    @property
    def shown(self) -> str:
        """The value for a person's eyes."""
        if self.option.secret or self.is_masked:
            return "***" if self.value else ""
        if self.option.reads:
            return shown_place(self.option.reads, self.value)
        is_address = self.option.is_address or "://" in self.value
        return redact(without_credentials(self.value) if self.value and is_address else self.value)

    @property
    def problem(self) -> str:
        """Why its system refuses the value; empty: nothing is wrong with it alone."""
        try:
            check_text(self.option, self.value)
        except InvalidRequest as error:
            return str(error)
        return ""

    @property
    def place(self) -> str:
        """Where in its connection it is, for a person: `extra token`, `the field password`."""
        place = self.origin.partition(", ")[2]
        return f"the {place}" if place.startswith("field ") else place

    @property
    def is_of_connection(self) -> bool:
        """Whether a connection names it, which users may edit in the UI."""
        return self.origin.startswith(CONNECTION)


def environment(system: str, known: Iterable[Option]) -> Iterator[Layer]:
    """The layers of the environment: our own names, then those of the system's tools."""
    options = tuple(known)
    prefix = f"{_OURS}{system.upper()}_"
    yield _variables({option.name: (prefix + option.name.upper(),) for option in options})
    yield _variables({option.name: option.variables for option in options})


def check_environment(system: str, known: Iterable[Option], option_fields: Mapping[str, str]) -> None:
    """Refuse a variable that is nearly one of a system's, or begins as they do: a mistyped setting would be left out.

    Other programs may have such variables: Kubernetes makes some of a service's name.

    Args:
        system: which.
        known: its options.
        option_fields: which option each of a connection's fields holds.

    Raises:
        InvalidRequest: with the nearest name; it shows no value.
    """
    prefix = f"{_OURS}{system.upper()}_"
    names = {f"{prefix}{option.name.upper()}" for option in known}
    others = tuple(f"{_OURS}{one.upper()}_" for one in (*registry.known(), "schema_registry") if one != system)
    for variable in sorted(os.environ):
        if variable in names or variable.startswith(others) or not _may_be_ours(variable):
            continue
        if near := nearest_name(variable, names, likeness=_NEAR):
            raise InvalidRequest(f"environment variable {variable!r} is not a setting; did you mean {near!r}?")
        if variable.startswith(prefix):
            option = option_fields.get(variable.removeprefix(prefix).lower())
            hint = f"did you mean {prefix + option.upper()!r}?" if option else hint_for(variable, names)
            raise InvalidRequest(f"environment variable {variable!r} is not a setting; {hint}")


def check_agreement(
    conn_id: str, known: Iterable[Option], extras: Layer, fields: Layer, exclusive: frozenset[str]
) -> None:
    """Check that a connection says each thing once: of two values, or two credentials, one would be left out.

    Raises:
        InvalidRequest: an extra and a field differ, or several of the `exclusive` options are given. It shows no value.
    """
    options = tuple(known)
    said = {one.option.name: one for one in _named(options, extras)}
    for one in _named(options, fields):
        other = said.setdefault(one.option.name, one)
        if other.value != one.value:
            raise contradiction(conn_id, f"{other.place} and {one.place} differ", "Leave one of them empty")
    credentials = [one.place for one in said.values() if one.option.name in exclusive]
    check_one_credential(conn_id, credentials, "service")


def check_environment_addresses(settings: Mapping[str, Setting], rules: AddressRules | None) -> None:
    """Check that an address of the environment gets no secret without TLS that is not from there.

    Other tools may mean another cluster by it. A connection that itself says its address without TLS allows it.

    Raises:
        InvalidRequest: it would; with the names of both.
    """
    main = settings.get(rules.option) if rules else None
    is_clear = bool(rules and main and main.is_of_connection and rules.is_tls(scheme_of(main.value)) is False)
    for one in settings.values():
        if not one.origin.startswith(_ENVIRONMENT) or _has_tls(one.value, rules):
            continue
        if is_clear and rules and {*one.option.carries} <= {*rules.protected}:
            continue
        for name in one.option.carries:
            secret = settings[name]
            if secret.is_given and not secret.origin.startswith(_ENVIRONMENT):
                raise InvalidRequest(
                    f"{name} ({secret.origin}) would travel without TLS to {without_credentials(one.value)}, the "
                    f"address in {one.origin}, which may be of another cluster: give that address in the connection, "
                    f"as {one.option.name}"
                )


def _has_tls(address: str, rules: AddressRules | None) -> bool:
    scheme = scheme_of(address)
    return scheme == "https" or bool(rules and rules.is_tls(scheme))


def _may_be_ours(variable: str) -> bool:
    """Whether a variable begins as ours do, or nearly so: `STREAM_PULSAR_TOKEN`."""
    begins = f"{variable.partition('_')[0]}_"
    is_near = begins == _OURS or (begins[0] == _OURS[0] and nearest_name(begins, [_OURS], likeness=_NEAR) is not None)
    return is_near and bool(os.environ[variable]) and not _KUBERNETES.search(variable)


def _variables(names: Mapping[str, Iterable[str]]) -> dict[str, Given]:
    found: dict[str, Given] = {}
    for option, variables in names.items():
        for variable in variables:
            if os.environ.get(variable):
                found.setdefault(option, Given(os.environ[variable], f"{_ENVIRONMENT} {variable}"))
    return found


def layer(values: Mapping[str, object], origin: str) -> Layer:
    """The values of one place; each origin ends with the name that was used."""
    return {name: Given(value, f"{origin} {name}") for name, value in values.items()}


def resolve(
    known: Iterable[Option], layers: Iterable[Layer], exclusive: frozenset[str] = frozenset()
) -> dict[str, Setting]:
    """Every known option: given by the first layer that names it, else its default, else not set.

    Of the `exclusive` options, only those of the first layer that names any are taken.
    """
    options = tuple(known)
    found: dict[str, Setting] = {}
    for one in layers:
        decided = bool(exclusive & found.keys())
        for setting in _named(options, one):
            name = setting.option.name
            if name not in found and not (decided and name in exclusive):
                found[name] = setting
    for option in options:
        found.setdefault(option.name, Setting(option, option.default, "default" if option.default else NOT_SET))
    return {option.name: _masked(found[option.name], found) for option in options}


def _masked(setting: Setting, found: Mapping[str, Setting]) -> Setting:
    """Masked, if the option is not given that shows it to be no secret."""
    other = setting.option.masked_without
    return replace(setting, is_masked=True) if other and not found[other].is_given else setting


def given_values(settings: Mapping[str, Setting]) -> dict[str, str]:
    """The values of options that something names; defaults are the system's to fill in."""
    return {name: setting.value for name, setting in settings.items() if setting.is_given}


def _named(options: Iterable[Option], given: Layer) -> Iterator[Setting]:
    for option in options:
        names = [name.lower() for name in (option.name, *option.aliases)]
        found = [one for name, one in given.items() if name.lower() in names and one.value not in (None, "")]
        if any(one.value != found[0].value for one in found):
            raise InvalidRequest(f"{' and '.join(one.origin for one in found)} are the same setting: give one of them")
        if found and (text := _text(option, found[0])):
            yield Setting(option, text, found[0].origin)


def _text(option: Option, given: Given) -> str:
    """A value as its system parses it.

    Raises:
        InvalidRequest: it is an object, an empty list, or a list although the option takes one value; the value is not
            shown.
    """
    value = given.value
    takes_several = option.kind in ("names", "hosts", "text")
    several = value if isinstance(value, list | tuple) and takes_several else [value]
    parts = [part for part in several if part not in (None, "")]
    if not parts:
        raise InvalidRequest(f"{given.origin} is a list that holds nothing: leave it out, or add its values")
    if any(isinstance(part, Mapping | list | tuple) for part in parts):
        kind = "an object" if isinstance(value, Mapping) else "a list"
        wanted = "a text, or a list of texts" if takes_several else "one text, number or boolean"
        raise InvalidRequest(f"{given.origin} is {kind}: it must be {wanted}")
    return ",".join(str(part).lower() if isinstance(part, bool) else str(part) for part in parts)
