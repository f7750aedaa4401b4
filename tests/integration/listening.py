"""Where processes of this machine listen, as its kernel says."""

from __future__ import annotations

import psutil


def places_of(pid: int) -> list[tuple[int, str]]:
    """The ports on which a process listens, each with its address."""
    return _listening(psutil.Process(pid).net_connections("tcp"))


def addresses_of_port(port: int) -> list[str]:
    """Where anything listens on a port."""
    return [address for found, address in _listening(psutil.net_connections("tcp")) if found == port]


def _listening(sockets):
    return sorted((one.laddr.port, one.laddr.ip) for one in sockets if one.status == psutil.CONN_LISTEN)
