"""What the endpoints of all systems share: a setting is declared once, as a field of its system's endpoint."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache
from typing import Any, Self

from airflow_provider_streams.errors import InvalidRequest, foreseen
from airflow_provider_streams.redaction import register_secret
from airflow_provider_streams.systems.connection import endpoint_fields, secret_references
from airflow_provider_streams.systems.connection.option import Kind, Option
from airflow_provider_streams.systems.connection.redirect_policy import RedirectPolicy
from airflow_provider_streams.systems.connection.tls import client_context

_KINDS: Mapping[str, Kind] = {"bool": "flag", "int": "count", "float": "seconds", "tuple[str, ...]": "names"}
_DAY_SECONDS = 86_400


def setting(help: str, default: Any = "", **details: Any) -> Any:  # noqa: A002 - as `Option` has it
    """A field of an endpoint that is also an `Option`; its type says how its text is read.

    Args:
        help: what it means, for a person.
        default: its value if it is not set; `MISSING`: it must be set.
        details: other fields of `Option`.
    """
    return field(default=default, repr=not details.get("secret"), metadata={"help": help, **details})


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointBase:
    """Where a service is, and our identity there. Its `repr` holds no secret.

    A subclass names its address first.

    Raises:
        InvalidRequest: a setting is malformed, or outside of its limits.
    """

    tls_ca_file: str = setting(
        "Certificates (PEM) to trust instead of the system's", label="CA file", placeholder="/etc/ssl/our-ca.pem"
    )
    tls_verify_hostname: bool = setting(
        "Whether a certificate must name the host we call", default=True, label="Verify host names"
    )
    request_timeout_seconds: float = setting(
        "How long one request may take", 30.0, most=_DAY_SECONDS, label="Request timeout"
    )

    def __post_init__(self) -> None:
        for option in self.options():
            _check(option, getattr(self, option.name))

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        """Its settings, the address first."""
        return _options_of(cls)  # type: ignore[arg-type]  # mypy takes `__hash__` of the class for its instances'

    @classmethod
    def option(cls, name: str) -> Option:
        """One of its settings, by its name."""
        return next(one for one in cls.options() if one.name == name)

    @classmethod
    @foreseen()
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """From settings by option name or alias, compared without case; empty and unknown ones are ignored.

        Raises:
            InvalidRequest: the address is missing, or a setting is malformed.
        """
        address, *_ = cls.options()
        values = endpoint_fields.parse(options, cls.options())
        if address.name not in values:
            raise InvalidRequest(f"the option {address.name} is missing, for example {address.placeholder}")
        return cls(**values)

    def to_options(self) -> dict[str, str]:
        """Its settings by option name, secrets included, defaults left out: the reverse of `from_options`."""
        return endpoint_fields.texts(self)

    def ssl_context(self) -> ssl.SSLContext:
        """Certificates are always checked, host names unless switched off.

        Raises:
            InvalidRequest: a certificate file cannot be used.
        """
        return client_context(tls_ca_file=self.tls_ca_file, tls_verify_hostname=self.tls_verify_hostname)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterEndpoint(EndpointBase):
    """A cluster, whose servers may lead to others of its servers.

    Raises:
        InvalidRequest: as `EndpointBase`, or `allowed_hosts` holds something that is no host.
    """

    allowed_hosts: tuple[str, ...] = setting(
        "Hosts besides the given ones that the cluster may lead to, between commas; *.example.com is all below it", ()
    )
    stall_seconds: float = setting(
        "How long a read may make no progress while there is more to come", 60.0, most=_DAY_SECONDS, label="Stall limit"
    )

    def __post_init__(self) -> None:
        EndpointBase.__post_init__(self)  # `super()` knows the class without slots
        RedirectPolicy.of((), self.allowed_hosts)


@cache
def _options_of(endpoint: type[Any]) -> tuple[Option, ...]:
    known = {one.name: one for one in fields(endpoint)}
    return tuple(_option(known[name]) for cls in endpoint.__mro__ for name in vars(cls).get("__slots__", ()))


def _option(one: Field[Any]) -> Option:
    default = "" if one.default is MISSING else endpoint_fields.text_of(one.default)
    return Option(**{"name": one.name, "default": default, "kind": _KINDS.get(str(one.type), "text"), **one.metadata})


def check_text(option: Option, text: str) -> None:
    """Check the text of one setting as an endpoint does; an empty one counts as not given.

    Raises:
        InvalidRequest: the setting is malformed, or outside of its limits.
    """
    for value in endpoint_fields.parse({option.name: text}, [option]).values():
        _check(option, value)


def _check(option: Option, value: Any) -> None:
    if option.secret:
        register_secret(value)
    if option.ports:
        endpoint_fields.hosts_of(option, value)
    if option.kind == "http":
        endpoint_fields.check_http(option.name, value)
        endpoint_fields.check_api_path(option.name, value, option.api_path)
    if option.kind == "token":
        secret_references.as_token(option.name, value)
    if option.choices and value not in ("", *option.choices):
        raise InvalidRequest(f"{option.name} must be one of {', '.join(option.choices)}, got {value!r}")
    if option.most and not 0 < value <= option.most:
        raise InvalidRequest(f"{option.name} must be positive, and {option.most:,} at most, got {value}")
