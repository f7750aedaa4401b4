"""Where a connection leads, and whether with TLS: one rule for every system and for every way to write it.

Airflow has four places for a scheme: the type (`pulsar+ssl://host` in a URI), the field Host, a field of its own, and
the extra that holds the whole address. It means the same in all of them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.systems.connection.contradiction import contradiction


@dataclass(frozen=True, slots=True)
class AddressRules:
    """How the address of a system may be written."""

    kind: str
    """The type of its connections. It says nothing about TLS."""
    option: str
    """The extra that holds the whole address."""
    secure: tuple[str, ...]
    """Schemes with TLS. The first is advised."""
    plain: tuple[str, ...]
    """Schemes without TLS. The first is advised."""
    default: str
    """The scheme of a connection that names none and has nothing to protect."""
    types: frozenset[str] = frozenset()
    """Schemes that may be the connection's type, as in a URI; `<kind>+<scheme>` may, unless both are one word."""
    protected: tuple[str, ...] = ()
    """Options that travel to this address, or show that TLS was meant: with one of them, no scheme is guessed."""
    takes_others: bool = False
    """Whether addresses of other schemes pass as they are."""
    schema_is_scheme: bool = False
    """Whether the field Schema holds a scheme."""
    takes_several: bool = False
    """Whether an address may hold several hosts."""
    credentials: str = "login and password"
    """Where credentials belong, instead of the address."""

    def is_tls(self, scheme: str) -> bool | None:
        """Whether a scheme means TLS; None: it is none of ours."""
        return True if scheme in self.secure else False if scheme in self.plain else None

    @property
    def accepted_types(self) -> dict[str, str]:
        """Each type that a connection may have, in lower case, and the scheme that it means; empty: none."""
        schemes = (*self.secure, *self.plain)
        # the kind's own name says nothing about TLS, also not when it is written twice
        named = {f"{self.kind}+{scheme}": scheme for scheme in schemes if scheme != self.kind}
        named |= {scheme: scheme for scheme in schemes if scheme in self.types}
        # Airflow stores the `-` of a URI's scheme as `_`
        stored = {name.replace("+", "_"): scheme for name, scheme in named.items()}
        return {"": "", self.kind: "", **stored, **named}

    @property
    def tls_type(self) -> str:
        """The type that means TLS, as a URI begins."""
        scheme = self.secure[0]
        return scheme if scheme in self.types else f"{self.kind.replace('_', '-')}+{scheme}"

    def scheme_of_type(self, conn_type: str | None) -> str | None:
        """The scheme that a connection's type means; empty: it says none; None: it is another system's type."""
        return self.accepted_types.get((conn_type or "").lower().replace("-", "_"))


class Parts(NamedTuple):
    """What a connection says of an address. Its fields are those of Airflow."""

    conn_id: str
    conn_type: str | None = None
    host: str | None = None
    port: int | None = None
    schema: str | None = None
    whole: str = ""
    """The whole address, which wins over host and port."""
    place: str = ""
    """Where that is written, for a person: `extra service_url`."""


def address_of(parts: Parts, rules: AddressRules, protected: Sequence[str] = ()) -> str:
    """The whole address of a connection, or else `scheme://host:port` of its type, host and port; empty without. Pure.

    The field port is for every host that has none of its own, also in the whole address.

    Args:
        parts: of the connection.
        rules: of its system.
        protected: what must not travel without TLS, for a person: `the field password`.

    Raises:
        InvalidRequest: the type is another system's; the places contradict each other; the host holds credentials or
            is no host; or nothing says whether something protected may travel without TLS. It names the fields, and
            shows no value of theirs but schemes and ports.
    """
    check_type(parts, rules)
    written = tuple(_written(parts, rules))
    _check_agreement(parts, written, rules)
    if protected and not written:
        raise _unspoken(parts, protected, rules)
    of_fields = ""
    if host := (parts.host or "").strip():
        scheme, rest = _split(host)
        scheme = scheme or next((one.scheme for one in written if one.place != parts.place), rules.default)
        of_fields = f"{scheme}://{_authority(parts, scheme, rest, rules)}"
    return _whole_with_port(parts, rules) or of_fields


def check_type(parts: Parts, rules: AddressRules) -> None:
    """Check that a connection is of a system's type.

    Raises:
        InvalidRequest: it is of another type, or Airflow could not read its URI.
    """
    check_was_read(parts, rules)
    if rules.scheme_of_type(parts.conn_type) is None:
        raise InvalidRequest(
            f"connection {parts.conn_id!r} is of type {parts.conn_type!r}, but one of type {rules.kind!r} (with TLS "
            f"also {rules.tls_type!r}) is needed here: name another connection, or correct its type"
        )


class _Written(NamedTuple):
    place: str
    scheme: str


def _written(parts: Parts, rules: AddressRules) -> Iterator[_Written]:
    """Each place that says a scheme: the host first, as it is what people see."""
    places = {
        "host": _split(parts.host or "")[0],
        "schema": (parts.schema or "").strip().lower() if rules.schema_is_scheme else "",
        "conn_type": rules.scheme_of_type(parts.conn_type) or "",
        parts.place: _split(parts.whole)[0],
    }
    for place, scheme in places.items():
        is_passed = place == parts.place or (place == "host" and rules.takes_others)  # who takes it, checks it
        if scheme and rules.is_tls(scheme) is None and not is_passed:
            raise InvalidRequest(
                f"connection {parts.conn_id!r}: {place} has the scheme {shown_scheme(scheme, rules)}, but "
                f"{_shown_schemes(rules)} is needed"
            )
        if scheme:
            yield _Written(place, scheme)


def _check_agreement(parts: Parts, written: Sequence[_Written], rules: AddressRules) -> None:
    """Two places that differ about TLS: one of them is a mistake, and we cannot know which."""
    known = [(one, tls) for one in written if (tls := rules.is_tls(one.scheme)) is not None]
    if len({tls for _, tls in known}) > 1:
        said = ", ".join(f"{one.place} says {one.scheme}:// ({'with' if tls else 'without'} TLS)" for one, tls in known)
        raise contradiction(parts.conn_id, said, "Correct one of them")


def _unspoken(parts: Parts, protected: Sequence[str], rules: AddressRules) -> InvalidRequest:
    return InvalidRequest(
        f"connection {parts.conn_id!r} has {' and '.join(protected)}, but nothing says whether to use TLS. Write the "
        f"scheme in front of the host: {rules.secure[0]}://HOST with TLS, or {rules.plain[0]}://HOST if secrets may "
        f"travel in clear. A URI with TLS begins with {rules.tls_type}://"
    )


def check_was_read(parts: Parts, rules: AddressRules) -> None:
    """Check that Airflow read a connection's URI: with a wrong scheme (`schema_registry://`), all of it is the schema.

    Raises:
        InvalidRequest: it did not.
    """
    if not (parts.conn_type or parts.host) and re.search("@|//", parts.schema or ""):
        kind = rules.kind.replace("_", "-")
        raise InvalidRequest(
            f"connection {parts.conn_id!r} has neither type nor host, but an address in schema: Airflow could not read "
            f"its URI. A URI's scheme has letters, digits, + and -, and no underscore: begin with {kind}://, or "
            f"with TLS with {rules.tls_type}://"
        )


# Hosts and ports


def host_and_port(conn_id: str, host: str | None, port: int | None) -> tuple[str | None, int | None]:
    """The one host of a connection, without the brackets of IPv6, and its own port, or the port of the field.

    Raises:
        InvalidRequest: it is an address with a scheme or credentials, or says another port than the field.
    """
    if not host or host.startswith("/"):  # a database's socket
        return host or None, port
    found, own = _host_and_port(conn_id, "host", host.strip())
    if own and port and own != port:
        raise _two_ports(conn_id, own, port)
    return found.removeprefix("[").removesuffix("]"), own or port


_PART: Final = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+(%\w+)?\]|[^:\[\]/?#@\s]+)(:(?P<port>\d{1,5}))?")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_SHOWN: Final = re.compile(r"[a-z][a-z+]{1,11}")
_NO_AUTHORITY: Final = re.compile(r"[/?#]")


def _split(address: str) -> tuple[str, str]:
    """The scheme in lower case, and the rest."""
    before, mark, rest = address.strip().partition("://")
    return (before.lower(), rest) if mark and _SCHEME.fullmatch(before) else ("", address.strip())


def shown_scheme(scheme: str, rules: AddressRules) -> str:
    """A wrong scheme as a message may show it: anything but a word or a type may be a token in the wrong place."""
    is_shown = _SHOWN.fullmatch(scheme) or rules.scheme_of_type(scheme) is not None
    return f"{scheme}://" if is_shown else "of another system"


def scheme_of(address: str) -> str:
    """Its scheme in lower case; empty: it has none."""
    return _split(address)[0]


def check_whole(conn_id: str, place: str, address: str, rules: AddressRules) -> str:
    """An address that stands alone, with its scheme in lower case; empty if it is.

    Raises:
        InvalidRequest: it has no scheme, or another system's; or it is one of the web and has credentials, a query, or
            no host. It is not shown.
    """
    if not address:
        return ""
    scheme, rest = _split(address)
    is_ours = rules.is_tls(scheme) is not None
    if "@" in _authority_of(rest) and (not scheme or is_ours):
        raise InvalidRequest(
            f"connection {conn_id!r}: {place} must be http(s)://host:port without name and password: put these into "
            f"{rules.credentials}"
        )
    if not scheme:
        raise InvalidRequest(f"connection {conn_id!r}: {place} has no scheme: begin with {_shown_schemes(rules)}")
    if not is_ours and not rules.takes_others:
        raise InvalidRequest(f"connection {conn_id!r}: {place} has another scheme than {_shown_schemes(rules)}")
    if is_ours:
        for host in _hosts(conn_id, place, rest, rules):
            _host_and_port(conn_id, place, host)
    return normal(address)


def _whole_with_port(parts: Parts, rules: AddressRules) -> str:
    """The whole address, with the port of the field for each host that has none of its own."""
    scheme, rest = _split(parts.whole)
    authority = _authority_of(rest)
    user, mark, hosts = authority.rpartition("@")
    is_passed = bool(mark) if rules.is_tls(scheme) is not None else not (scheme and rules.takes_others)
    if not parts.port or is_passed or (parts.host and not authority):  # who takes it, checks it
        return parts.whole
    if not authority:
        raise InvalidRequest(
            f"connection {parts.conn_id!r}: {parts.place} names no host that the field port could be for: leave port "
            "empty"
        )
    pairs = [_host_and_port(parts.conn_id, parts.place, one.strip()) for one in hosts.split(",")]
    return f"{scheme}://{user}{mark}{_joined(pairs, parts.port)}{rest.removeprefix(authority)}"


def normal(address: str) -> str:
    """An address with its scheme in lower case, as all comparisons expect it."""
    scheme, rest = _split(address)
    return f"{scheme}://{rest}" if scheme else address


def _authority(parts: Parts, scheme: str, rest: str, rules: AddressRules) -> str:
    """Hosts with ports, and the path without its last slash."""
    authority = _authority_of(rest)
    path = rest.removeprefix(authority).rstrip("/")
    is_ours = rules.is_tls(scheme) is not None
    if "@" in authority and is_ours:
        raise InvalidRequest(
            f"connection {parts.conn_id!r}: host must not hold credentials: put them into {rules.credentials}"
        )
    if not is_ours and parts.port is None:
        return authority + path
    user, mark, several = authority.rpartition("@")
    hosts = _hosts(parts.conn_id, "host", rest, rules) if is_ours else several.split(",")
    return f"{user}{mark}{_with_port(parts, hosts)}{path}"


def _hosts(conn_id: str, place: str, rest: str, rules: AddressRules) -> list[str]:
    """The hosts of an address of ours, without its scheme.

    Raises:
        InvalidRequest: a query or a fragment follows, which requests would take for a part of their own; or there are
            several hosts where only one is called.
    """
    if mark := next((one for one in rest if one in "?#"), None):
        raise InvalidRequest(f"connection {conn_id!r}: {place} has a {mark!r}: write nothing after host, port and path")
    hosts = _authority_of(rest).split(",")
    if len(hosts) > 1 and not rules.takes_several:
        raise InvalidRequest(f"connection {conn_id!r}: {place} has several hosts: name the one that is called")
    return hosts


def _authority_of(rest: str) -> str:
    return _NO_AUTHORITY.split(rest, maxsplit=1)[0]


def _with_port(parts: Parts, hosts: Iterable[str]) -> str:
    """Each host of the field with its own port, or the port of the field."""
    pairs = [_host_and_port(parts.conn_id, "host", one.strip()) for one in hosts]
    if parts.port and all(own and own != parts.port for _, own in pairs):
        raise _two_ports(parts.conn_id, pairs[-1][1], parts.port)
    return _joined(pairs, parts.port)


def _joined(pairs: Iterable[tuple[str, int | None]], port: int | None) -> str:
    """Hosts between commas, each with its own port, or else this one."""
    ports = [(host, own or port) for host, own in pairs]
    return ",".join(f"{host}:{found}" if found else host for host, found in ports)


def _two_ports(conn_id: str, own: int | None, port: int) -> InvalidRequest:
    return contradiction(conn_id, f"host says port {own}, and port says {port}", "Leave one of them empty")


def _host_and_port(conn_id: str, place: str, part: str) -> tuple[str, int | None]:
    if is_ipv6(part):
        return f"[{part}]", None
    found = _PART.fullmatch(part)
    if found is None:
        raise InvalidRequest(
            f"connection {conn_id!r}: {place} holds something that is no host: write host, host:port or [address]:port"
        )
    return found["host"], int(found["port"]) if found["port"] else None


def is_ipv6(text: str) -> bool:
    """Whether a text is an address of IPv6 without brackets."""
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def _shown_schemes(rules: AddressRules) -> str:
    return f"{rules.secure[0]}:// (with TLS) or {rules.plain[0]}:// (without)"
