"""Where a server may lead us: to the owner that a lookup names, a redirect's target, the store that a controller names.

Hosts that the connection names are called as they are. Others are called only if they are no special addresses: what
lies there belongs to the machine that calls, or to the cloud under it, and not to a cluster.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass

from airflow_provider_streams.errors import InvalidRequest, NotFollowed

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_SPECIAL = {
    "a link-local address, where clouds keep their metadata": ("169.254.0.0/16", "fe80::/10"),
    "an address of a cloud's metadata": (
        "100.100.100.200/32",
        "168.63.129.16/32",
        "192.0.0.0/24",
        "fd00:ec2::/32",
        "fd20:ce::/32",
    ),
    "an address of no single machine": ("224.0.0.0/4", "ff00::/8", "240.0.0.0/4"),
}
_NETWORKS = {ipaddress.ip_network(text): kind for kind, texts in _SPECIAL.items() for text in texts}
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_PATTERN = re.compile(r"(\*\.)?[\w.-]+|[0-9A-Fa-f:.]+")


@dataclass(frozen=True, slots=True)
class Reach:
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
            if not _PATTERN.fullmatch(host):
                raise InvalidRequest("allowed_hosts holds names of hosts, addresses, or *.example.com, between commas")

    @classmethod
    def of(cls, given: Iterable[str], allowed: Iterable[str]) -> Reach:
        """From names in any case."""
        return cls(frozenset(map(_plain_name, given)), tuple(map(_plain_name, allowed)))

    def names(self, host: str) -> bool:
        """Whether the connection names this host."""
        name = _plain_name(host)
        return name in self.given or any(
            name.endswith(one[1:]) if one.startswith("*.") else name == one for one in self.allowed
        )

    def check_name(self, where: str, host: str) -> None:
        """Before a host is called that the server at `where` named.

        Raises:
            NotFollowed: `allowed_hosts` is given, and it is none of them; or it is a special address.
        """
        if self.allowed and not self.names(host):
            raise NotFollowed(where, host, "which is none of allowed_hosts")
        if _address(host):
            self.check_address(where, host, host)

    def check_address(self, where: str, host: str, address: str) -> None:
        """What a host turned out to be, before anything is sent there.

        Raises:
            NotFollowed: it is a special address, and the connection does not name the host.
        """
        if self.names(host):
            return
        found = _address(address)
        if found is None:
            return
        kind = next((kind for network, kind in _NETWORKS.items() if found in network), None)
        if kind is None and (found.is_loopback or found.is_unspecified) and not self._is_here():
            kind = "an address of this very machine, on which the given hosts are not"
        if kind:
            shown = host if host == address else f"{host} ({address})"
            raise NotFollowed(where, shown, kind)

    def _is_here(self) -> bool:
        """Whether one of the given hosts is this machine, by a loopback address."""
        return any(found.is_loopback for host in self.given for found in _resolved(host))


def _plain_name(host: str) -> str:
    return host.strip().lower().removeprefix("[").removesuffix("]").removesuffix(".")


def _resolved(host: str) -> list[_Address]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return []
    return [address for *_, place in found if (address := _address(str(place[0])))]


def _address(text: str) -> _Address | None:
    """An IP address, an IPv4 one also where it is written within an IPv6 one; None: a name."""
    try:
        found = ipaddress.ip_address(_plain_name(text).partition("%")[0])
    except ValueError:
        return None
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour
        if inner is None and found in _NAT64:
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        return inner or found
    return found
