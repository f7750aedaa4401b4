"""Where a server may lead us: to the owner that a lookup names, a redirect's target, the store that a controller names.

A cluster names its own servers, as names or addresses of any network, and they are called as its own clients call
them. `allowed_hosts` narrows that to the hosts of the connection and the listed ones. This is about names: what a name
turns out to be is for DNS, and for TLS, which asks the server to prove it.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass

from airflow_provider_streams.errors import InvalidRequest, RedirectRefused

_NAME = re.compile(r"(\*\.)?[\w.-]+")


@dataclass(frozen=True, slots=True)
class RedirectPolicy:
    """The hosts that a connection names.

    Args:
        given: in its addresses.
        allowed: in `allowed_hosts`; `*.example.com` is every host below it. If there are any, no other host is called.

    Raises:
        InvalidRequest: what cannot be a host in `allowed`.
    """

    given: frozenset[str]
    allowed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for host in self.allowed:
            if not (_NAME.fullmatch(host) or _address(host)):
                raise InvalidRequest("allowed_hosts takes hosts, addresses, or *.example.com, between commas")

    @classmethod
    def of(cls, given: Iterable[str], allowed: Iterable[str]) -> RedirectPolicy:
        """From names in any case."""
        return cls(frozenset(map(_plain, given)), tuple(map(_plain, allowed)))

    def names(self, host: str) -> bool:
        """Whether the connection names this host."""
        name = _plain(host)
        return name in self.given or any(
            name.endswith(one[1:]) if one.startswith("*.") else name == one for one in self.allowed
        )

    def check(self, where: str, host: str, fix: str = "", *, shown: str = "") -> None:
        """See whether a host may be called that the server at `where` named.

        Args:
            where: the server.
            host: the host.
            fix: what helps if not.
            shown: the whole address that was named, without anything secret; by default the host.

        Raises:
            RedirectRefused: `allowed_hosts` is given, and it is none of them; or the host is this machine, on which the
                given ones are not, or a link-local one, where clouds keep a machine's credentials.
        """
        if self.names(host):
            return
        target = shown or host
        if self.allowed:
            raise RedirectRefused(where, target, "which is none of allowed_hosts", fix)
        if _is_local(host) and not any(map(_is_local, self.given)):
            raise RedirectRefused(where, target, "which is the machine that calls, and the given hosts are not", fix)
        if (address := _address(host)) and address.is_link_local:
            raise RedirectRefused(where, target, "a link-local address, where clouds keep a machine's credentials", fix)


def _plain(host: str) -> str:
    return host.strip().lower().removeprefix("[").removesuffix("]").removesuffix(".")


def _is_local(host: str) -> bool:
    address = _address(host)
    if address is None:
        return _plain(host).rpartition(".")[2] == "localhost"
    return address.is_loopback or address.is_unspecified


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """An IP address, an IPv4 one also where it is written as an IPv6 one; None: a name."""
    try:
        found = ipaddress.ip_address(_plain(host).partition("%")[0])
    except ValueError:
        return None
    return (isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped) or found
