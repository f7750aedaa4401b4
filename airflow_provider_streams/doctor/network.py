"""Probes of one server, from its name to its certificate. Each takes bounded time, and says what was seen."""

from __future__ import annotations

import queue
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from airflow_provider_streams.errors import CertificateNotTrusted
from airflow_provider_streams.systems.connection.tls import tls_refusal

PROBE_SECONDS: Final = 5.0
"""How long looking up a name, connecting, or starting TLS may take, each."""

Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Probe:
    """What one probe of one address found."""

    address: Address
    says: str
    works: bool
    expires: datetime | None = None
    """When the server's certificate expires, if TLS was started."""
    next_step: str = ""
    """What to do, if this probe knows more than the general advice for its step."""

    @property
    def shown(self) -> str:
        """The address and what was found."""
        return f"{shown(self.address)}: {self.says}"


def shown(address: Address) -> str:
    """Host and port, as people write them."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def look_up(address: Address) -> Probe:
    """Whether the host's name has an address."""
    host, port = address
    answer: queue.SimpleQueue[list[str] | OSError] = queue.SimpleQueue()

    def ask() -> None:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            answer.put(sorted({str(one[4][0]) for one in found}))
        except OSError as error:
            answer.put(error)
        except UnicodeError as error:  # a label that no name can have
            answer.put(OSError(str(error)))

    # resolvers have no time limit of their own
    threading.Thread(target=ask, name="streams-doctor-dns", daemon=True).start()
    try:
        told = answer.get(timeout=PROBE_SECONDS)
    except queue.Empty:
        return Probe(address, f"the name server did not answer within {PROBE_SECONDS:.0f} s", works=False)
    if isinstance(told, OSError):
        return Probe(address, f"the host name is unknown ({told.strerror or told})", works=False)
    if told == [host]:
        return Probe(address, "it is an address, not a name", works=True)
    return Probe(address, f"the name has the address {', '.join(told)}", works=True)


def connect(address: Address) -> Probe:
    """Whether something listens on the port."""
    try:
        socket.create_connection(address, PROBE_SECONDS).close()
    except TimeoutError:
        return Probe(address, f"no connection within {PROBE_SECONDS:.0f} s", works=False)
    except OSError as error:
        return Probe(address, f"no connection: {error.strerror or error}", works=False)
    return Probe(address, "the port is open", works=True)


def start_tls(address: Address, context: Callable[[], ssl.SSLContext]) -> Probe:
    """Whether the server proves who it is. Raises `InvalidRequest` if our own certificate files cannot be used."""
    ours = context()
    try:
        with (
            socket.create_connection(address, PROBE_SECONDS) as plain,
            ours.wrap_socket(plain, server_hostname=address[0]) as secure,
        ):
            certificate = secure.getpeercert() or {}
            version = secure.version()
    except OSError as error:
        return _without_tls(address, error)
    ends = certificate.get("notAfter")
    expires = datetime.fromtimestamp(ssl.cert_time_to_seconds(str(ends)), UTC) if ends else None
    until = f", valid until {expires:%Y-%m-%d}" if expires else ""
    return Probe(address, f"{version} with a trusted certificate{until}", works=True, expires=expires)


_PLAIN: Final = "Use the server's TLS port, or a scheme without TLS"


def _without_tls(address: Address, error: OSError) -> Probe:
    refusal = tls_refusal(shown(address), error)
    says, next_step = f"the connection was lost while TLS started ({error.strerror or error})", _PLAIN
    if isinstance(refusal, CertificateNotTrusted):
        says = f"the certificate cannot be trusted ({getattr(error, 'verify_message', '') or error})"
        next_step = ""
    elif refusal is not None:
        says = "the server asks for a client certificate"
        next_step = "Set tls_cert_file and tls_key_file to a certificate that the server knows"
    elif isinstance(error, ssl.SSLError):
        says = f"the port does not speak TLS ({error.reason or error})"
    return Probe(address, says, works=False, next_step=next_step)


def expires_soon(probe: Probe, now: datetime, within: timedelta = timedelta(days=14)) -> bool:
    """Whether the certificate has little time left."""
    return probe.expires is not None and probe.expires - now < within
