"""One connection to one broker: blocking, with time limits, kept alive, never left half open."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from airflow_provider_streams.errors import FrameTooLong, ProtocolError, StreamsError, SystemUnavailable, as_clause
from airflow_provider_streams.systems.connection.tls import tls_refusal
from airflow_provider_streams.systems.pulsar.client.endpoint import Address, Endpoint
from airflow_provider_streams.systems.pulsar.client.wire import commands_pb2 as pb
from airflow_provider_streams.systems.pulsar.client.wire.commands import Command, server_error
from airflow_provider_streams.systems.pulsar.client.wire.frames import Frame, FrameBuffer, encode_frame
from airflow_provider_streams.version import __version__

CLIENT_VERSION: Final = f"airflow-provider-streams {__version__}"
PROTOCOL_VERSION: Final = 19
RECEIVE_BUFFER_BYTES: Final = 8 * 1024 * 1024
RECEIVE_BYTES: Final = 1024 * 1024
"""The most that one call receives: its cost must not grow with the socket's buffer."""
CONNECT_SECONDS: Final = 10.0
PING_SECONDS: Final = 10.0
"""After so much silence we send a PING, and the broker may take as long to answer it."""

_FLAGS: Final = pb.FeatureFlags(supports_auth_refresh=True, supports_broker_entry_metadata=True)


class Connection:
    """Connected and authenticated when built.

    Args:
        address: The broker, or the proxy in front of it.
        endpoint: Credentials, certificates and time limits.
        behind_proxy: The broker to reach through the proxy at `address`.

    Raises:
        SystemUnavailable: no answer in time, refused, or an unknown host.
        AuthenticationFailed: the credentials are missing, wrong or expired.
        CertificateNotTrusted: the other side does not prove who it is.
        ProtocolError: the other side is not a Pulsar broker.
    """

    def __init__(self, address: Address, endpoint: Endpoint, *, behind_proxy: Address | None = None) -> None:
        self.address = address
        self.where = str(behind_proxy or address)
        self.buffer = FrameBuffer(limit=endpoint.max_entry_bytes)
        self._endpoint = endpoint
        self._timeout = endpoint.request_timeout_seconds
        self._last_id = 0
        self._heard_at = time.monotonic()
        self._pinged_at: float | None = None
        self._socket = _open_socket(address, endpoint)
        try:
            self._shake_hands(behind_proxy)
        except BaseException:
            self.close()
            raise

    def next_id(self) -> int:
        """A number that no other request or consumer of this connection has."""
        self._last_id += 1
        return self._last_id

    def send(self, *commands: Command) -> None:
        """Send commands together; raises `SystemUnavailable` if the connection is lost."""
        try:
            self._socket.settimeout(self._timeout)
            self._socket.sendall(b"".join(map(encode_frame, commands)))
        except OSError as error:
            raise self._lost(error) from error

    def receive(self, timeout_seconds: float) -> list[Frame]:
        """The complete frames (in `buffer`) that arrived; none if none was complete in time.

        Raises:
            SystemUnavailable: the connection is lost, or the broker does not answer a PING.
            FrameTooLong: a message beyond the endpoint's limit.
            ProtocolError: the bytes are not Pulsar's protocol.
        """
        try:
            space = self.buffer.space()[:RECEIVE_BYTES]
            count = self._receive_into(space, timeout_seconds)
            return self.buffer.received(count) if count else []
        except FrameTooLong:
            raise
        except ProtocolError as error:
            raise ProtocolError(f"{self.where}: {error}") from error

    def _receive_into(self, space: memoryview, timeout_seconds: float) -> int:
        """How many bytes arrived; 0: none in time."""
        try:
            self._socket.settimeout(timeout_seconds)
            count = self._socket.recv_into(space)
        except TimeoutError:
            self._check_silence()
            return 0
        except OSError as error:
            raise self._lost(error) from error
        if not count:
            raise SystemUnavailable(self.where, "it closed the connection")
        self._heard_at, self._pinged_at = time.monotonic(), None
        return count

    def command(self, frame: Frame) -> Command | None:
        """The command of a frame that is not a MESSAGE; None if the connection itself handled it.

        Raises:
            SystemUnavailable: the connection is lost while answering.
            ProtocolError: it is no command.
        """
        command = self.buffer.command(frame)
        if isinstance(command, pb.CommandPing):
            self.send(pb.CommandPong())
        elif isinstance(command, pb.CommandAuthChallenge):
            self._authenticate_again()
        elif not isinstance(command, pb.CommandPong):
            return command
        return None

    def exchange(self, requests: Mapping[int, Command]) -> dict[int, Command]:
        """Send requests together and wait for all their answers, by request id; refusals are `CommandError` values.

        Only for a connection without a consumer that receives entries.

        Raises:
            SystemUnavailable: the connection is lost, or an answer is missing after the request timeout.
        """
        self.send(*requests.values())
        answers: dict[int, Command] = {}
        for commands in self._received():
            numbered = {getattr(command, "request_id", -1): command for command in commands}
            answers |= {number: command for number, command in numbered.items() if number in requests}
            if len(answers) == len(requests):
                return answers
        missing = next(command for number, command in requests.items() if number not in answers)
        raise SystemUnavailable(self.where, f"no answer to {type(missing).__name__} within {self._timeout:.0f} s")

    def close(self) -> None:
        """Close the socket; its subscriptions end with it."""
        self._socket.close()

    def _shake_hands(self, behind_proxy: Address | None) -> None:
        endpoint = self._endpoint
        method = endpoint.auth_method
        connect = pb.CommandConnect(
            client_version=CLIENT_VERSION,
            auth_data=endpoint.auth_data() if method else None,
            protocol_version=PROTOCOL_VERSION,
            auth_method_name=method or None,
            proxy_to_broker_url=f"{behind_proxy.host}:{behind_proxy.port}" if behind_proxy else None,
            feature_flags=_FLAGS,
        )
        self.send(connect)
        answer = self._first_answer()
        if isinstance(answer, pb.CommandError):
            note = self._expired() if answer.error == pb.AuthenticationError else ""
            raise server_error(answer, where=self.where, action="connect", note=note)
        if not isinstance(answer, pb.CommandConnected):
            raise ProtocolError(f"{self.where} answers CONNECT with {type(answer).__name__}")
        if answer.max_message_size > 0:
            self.buffer.legal = answer.max_message_size

    def _expired(self) -> str:
        """A note about an expired token: a broker does not distinguish it from a wrong one."""
        expiry = self._endpoint.token_expiry()
        if expiry is None or expiry > datetime.now(UTC):
            return ""
        return f"; the token expired at {expiry.isoformat()}"

    def _first_answer(self) -> Command:
        try:
            for commands in self._received():
                for command in commands:
                    return command
        except SystemUnavailable as error:
            hint = f"is it a broker's binary port, {'with' if self.address.tls else 'without'} TLS?"
            raise SystemUnavailable(self.where, f"{as_clause(error.detail)}; {hint}") from error
        raise SystemUnavailable(self.where, f"no answer to CONNECT within {self._timeout:.0f} s")

    def _received(self) -> Iterator[list[Command]]:
        """The commands of each receive until the request timeout."""
        until = time.monotonic() + self._timeout
        while (rest := until - time.monotonic()) > 0:
            commands = [self.command(frame) for frame in self.receive(min(rest, PING_SECONDS))]
            yield [command for command in commands if command is not None]

    def _authenticate_again(self) -> None:
        data = pb.AuthData(auth_method_name=self._endpoint.auth_method, auth_data=self._endpoint.auth_data())
        self.send(
            pb.CommandAuthResponse(client_version=CLIENT_VERSION, response=data, protocol_version=PROTOCOL_VERSION)
        )

    def _check_silence(self) -> None:
        now = time.monotonic()
        if self._pinged_at is not None:
            if now - self._pinged_at > PING_SECONDS:
                raise SystemUnavailable(self.where, f"PING was not answered within {PING_SECONDS:.0f} s")
        elif now - self._heard_at > PING_SECONDS:
            self.send(pb.CommandPing())
            self._pinged_at = time.monotonic()

    def _lost(self, error: OSError) -> StreamsError:
        return tls_refusal(self.where, error) or SystemUnavailable(self.where, f"the connection is lost: {error}")


def _open_socket(address: Address, endpoint: Endpoint) -> socket.socket:
    where = str(address)
    limit = min(CONNECT_SECONDS, endpoint.request_timeout_seconds)
    context = endpoint.ssl_context() if address.tls else None
    try:
        sock = socket.create_connection((address.host, address.port), limit)
    except socket.gaierror as error:
        raise SystemUnavailable(where, f"the host {address.host!r} is unknown ({error.strerror})") from error
    except TimeoutError as error:
        raise SystemUnavailable(where, f"no connection within {limit:.0f} s") from error
    except OSError as error:
        raise SystemUnavailable(where, f"no connection: {error.strerror or error}") from error
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        if context is None:
            return sock
        return context.wrap_socket(sock, server_hostname=address.host)
    except BaseException as error:
        sock.close()
        if isinstance(error, OSError):
            raise _tls_failure(where, error) from error
        raise


def _tls_failure(where: str, error: OSError) -> StreamsError:
    if refusal := tls_refusal(where, error):
        return refusal
    if isinstance(error, ssl.SSLError):
        return ProtocolError(f"{where} does not speak TLS as we do ({error.reason}): is it the TLS port?")
    return SystemUnavailable(where, f"the connection was lost while starting TLS: {error}")
