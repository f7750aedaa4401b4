"""Where each setting of a connection comes from: one order for every system, and for every way to ask.

    1. argument       `options=` of a hook
    2. connection     its extras, then its fields (host, port, login, password, schema)
    3. environment    STREAMS_<SYSTEM>_<OPTION>, then the names that the system's own tools use (`Option.variables`)
    4. default        the system's

What a connection may name of this machine, `airflow.cfg` says (`hooks.secret_places`).

The first that names an option decides. Empty values count as not given.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from airflow_provider_streams.redaction import redact
from airflow_provider_streams.systems.option import Option
from airflow_provider_streams.systems.secret_places import shown_place
from airflow_provider_streams.systems.settings import without_credentials

NOT_SET = "not set"
CONNECTION = "connection"
"""How the origins begin of what stands in a connection."""


class Given(NamedTuple):
    """A value that a layer holds."""

    value: object
    origin: str
    """Where it stands, for a person: `environment PRAVEGA_SCOPE`."""


Layer = Mapping[str, Given]
"""What one place says, by option name or alias; case is ignored."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What an option is, and why. Its `repr` and `shown` hold no secret."""

    option: Option
    value: str = field(repr=False)
    origin: str

    @property
    def is_given(self) -> bool:
        """Whether something else than the default names it."""
        return self.origin not in (NOT_SET, "default")

    @property
    def shown(self) -> str:
        """The value for a person's eyes."""
        if self.option.secret:
            return "***" if self.value else ""
        if self.option.reads:
            return shown_place(self.option.reads, self.value)
        is_address = self.option.is_address or "://" in self.value
        return redact(without_credentials(self.value) if self.value and is_address else self.value)

    @property
    def is_of_connection(self) -> bool:
        """Whether a connection names it: what somebody may have edited in the UI."""
        return self.origin.startswith(CONNECTION)


def environment(system: str, known: Iterable[Option]) -> Iterator[Layer]:
    """The layers of the environment: our own names, then those of the system's tools."""
    options = tuple(known)
    prefix = f"STREAMS_{system.upper()}_"
    yield _variables({option.name: (prefix + option.name.upper(),) for option in options})
    yield _variables({option.name: option.variables for option in options})


def _variables(names: Mapping[str, Iterable[str]]) -> dict[str, Given]:
    found: dict[str, Given] = {}
    for option, variables in names.items():
        for variable in variables:
            if os.environ.get(variable):
                found.setdefault(option, Given(os.environ[variable], f"environment {variable}"))
    return found


def layer(values: Mapping[str, object], origin: str) -> Layer:
    """What one place says; its origin is followed by the name that was used."""
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
    return {option.name: found[option.name] for option in options}


def merge_options(
    known: Iterable[Option], layers: Iterable[Mapping[str, object]], exclusive: frozenset[str] = frozenset()
) -> dict[str, str]:
    """The value of every option that some layer names; see `resolve`."""
    settings = resolve(known, (layer(values, "layer") for values in layers), exclusive)
    return given_values(settings)


def given_values(settings: Mapping[str, Setting]) -> dict[str, str]:
    """The values of options that something names; defaults are the system's to fill in."""
    return {name: setting.value for name, setting in settings.items() if setting.is_given}


def _named(options: Iterable[Option], given: Layer) -> Iterator[Setting]:
    folded = {name.lower(): one for name, one in given.items() if one.value not in (None, "")}
    for option in options:
        for name in (option.name, *option.aliases):
            one = folded.get(name.lower())
            if one is not None and (text := _text(one.value)):
                yield Setting(option, text, one.origin)
                break


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)
