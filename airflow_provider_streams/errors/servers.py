"""Errors of servers: they refuse, do not answer, or send what no server should."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from airflow_provider_streams.errors.base import StreamsError, as_sentence, because


class AccessError(StreamsError):
    """The stream system refuses us."""


class AuthenticationFailed(AccessError):
    """Our credentials are missing, wrong or expired."""

    foreseeable = True

    def __init__(self, where: str, detail: str = "") -> None:
        self.where = where
        super().__init__(
            f"{where} does not accept our credentials, or asks for some that were not sent{because(detail)}. Check the "
            "connection's password or token."
        )


class CertificateNotTrusted(AccessError):
    """The server's TLS certificate is not signed by an authority that we trust, has expired, or names another host."""

    foreseeable = True

    def __init__(self, where: str, detail: str = "") -> None:
        self.where = where
        super().__init__(
            f"{where}: its certificate cannot be trusted{because(detail)}. Set tls_ca_file to the authority that "
            "signed it, and call the server by a name that the certificate holds."
        )


_GRANT = (
    "Ask for the permission: to plan and read, Pulsar wants consume on the namespace, and Pravega READ on the stream."
)


class NotAuthorized(AccessError):
    """We are known, but may not do this."""

    foreseeable = True

    def __init__(self, where: str, action: str, detail: str = "") -> None:
        self.where, self.action = where, action
        super().__init__(f"{where}: not allowed to {action}{because(detail)}. {_GRANT}")


class RedirectRefused(AccessError):
    """A server leads to a host that the connection does not allow: another server may have led it there."""

    def __init__(self, where: str, target: str, cause: str, fix: str = "") -> None:
        self.where, self.target = where, target
        known = "If that is one of the cluster's hosts, add it to allowed_hosts."
        super().__init__(f"{where} leads to {target}: {as_sentence(cause)} {fix or known}")


class SourceNotFound(StreamsError):
    """The topic, stream or scope does not exist."""

    foreseeable = True

    def __init__(self, name: str, where: str = "") -> None:
        self.name = name
        at = f" at {where}" if where else ""
        super().__init__(
            f"{name} does not exist{at}, or this user may not see it. Check its spelling, and whether someone deleted "
            "it; reading never creates it."
        )


class SourceDeleted(AccessError):
    """The source was deleted before a cut of the window's end was recorded.

    Args:
        source: which source.
        window: the window that waits for the cut.
        last_cut: when its last cut was recorded.
        found: what is there in its place; empty: nothing.
    """

    def __init__(self, source: object, window: object, last_cut: datetime, found: str = "") -> None:
        self.source, self.window, self.last_cut, self.found = source, window, last_cut, found
        if found:
            cause = f"the source was deleted and made again since: now there is {found}"
            advice = "Recorders stop until you confirm that: record its first cut"
        else:
            cause = "the source no longer exists (or this user may not see it)"
            advice = "Take the source out of the DAG. If it is made again, record its first cut"
        super().__init__(
            f"{source}: window {window} cannot be read: {cause}. Its last cut was recorded at {last_cut.isoformat()}, "
            "and no later one can be recorded. What was stored since is gone. "
            f"{advice} with `airflow streams cuts record .. --start-over`."
        )


class SystemUnavailable(StreamsError):
    """No answer, or a temporary failure of the server."""

    retryable = True
    foreseeable = True
    hint: ClassVar[str] = (
        "It may be restarting; retry later. If it stays so, check host, port and TLS of the connection."
    )

    def __init__(self, where: str, detail: str) -> None:
        self.where, self.detail = where, detail
        super().__init__(f"{where} is not available: {as_sentence(detail)} {self.hint}")


class ConnectionLost(SystemUnavailable):
    """A connection broke, or nothing came in time; another one may do."""


class SparkUnavailable(SystemUnavailable):
    """Spark, its cluster or its Spark Connect server does not answer, or ended; its settings are not known to do it."""

    hint = (
        "It may be restarting or short of memory; retry later. If it stays so, check the address of the Spark "
        "connection, the settings of Spark, and the memory of the machine."
    )


class ReadStalled(SystemUnavailable):
    """A connection went silent before its split, or what it looked up, was read."""

    hint = (
        "If its server is restarting or busy, retry later. If the server answers other reads, and this one still "
        "stalls, the server cannot read what is stored there: its log says why."
    )

    def __init__(self, shard: str, at: object, end: object, seconds: float) -> None:
        self.shard, self.at, self.end, self.seconds = shard, at, end, seconds
        super().__init__(shard, f"nothing came for {seconds:.0f} s at {at} on the way to {end}")


class UnknownServerError(SystemUnavailable):
    """The server failed and does not say why. Its own clients try again, so this package does as well."""


class ProtocolError(StreamsError):
    """A server sent bytes or an answer that none should send."""


class CorruptFrame(ProtocolError):
    """A frame's checksum or structure is wrong; `place` is the ledger and the entry in it, where they are known."""

    retryable = True

    def __init__(self, message: str, place: tuple[int, int] | None = None) -> None:
        self.place = place
        super().__init__(message)


_AROUND = "read around it: one window between Cuts(start, end) that ends before it, and one that begins after it"


class MalformedEntry(CorruptFrame):
    """An entry arrived as stored, but its content contradicts its header."""

    retryable = False

    def __init__(self, topic: str, ledger: int, entry: int, why: str) -> None:
        self.topic, self.why = topic, why
        super().__init__(
            f"{topic}: entry {ledger}:{entry} cannot be decoded: {as_sentence(why)} Its producer wrote it so, and "
            f"retries do not change it. To go on, {_AROUND}.",
            (ledger, entry),
        )


class EntryTooLarge(CorruptFrame):
    """An entry is larger than a limit of the connection."""

    retryable = False

    def __init__(self, topic: str, ledger: int, entry: int, *, what: str, option: str, limit: int) -> None:
        self.topic, self.option, self.limit = topic, option, limit
        super().__init__(
            f"{topic}: entry {ledger}:{entry} is too large: {what}, but {option} is {limit}. To read it, raise "
            f"{option} of the connection (readers need memory for it); or {_AROUND}.",
            (ledger, entry),
        )


class FrameTooLong(ProtocolError):
    """A frame longer than a reader allows, though the broker may; `place` is the ledger and entry in it, if known."""

    def __init__(self, size: int, limit: int, option: str, place: tuple[int, int] | None) -> None:
        self.size, self.limit, self.place = size, limit, place
        super().__init__(f"a frame has {size} bytes, but {option} is {limit}: raise it to read this frame")


class CutNotAtEventBoundary(ProtocolError):
    """A cut is inside an event, or the stream holds no events: without `end`, no event begins at `offset`."""

    def __init__(self, shard: str, offset: int, end: int | None = None, *, first: bool = False) -> None:
        self.shard, self.offset, self.end = shard, offset, end
        if end is not None:
            super().__init__(
                f"{shard}: the range ends at offset {end}, inside the event at {offset}: the end cut is not a place "
                "between two events, or the stream is a byte stream. Take a cut from `latest` or from the journal."
            )
            return
        where = "the cut may point inside an event, or the stream" if first else "the stream"
        super().__init__(
            f"{shard}: the bytes at offset {offset} are not an event's header: {where} may be a byte stream, "
            "or a writer stored bytes without framing. Only streams of events can be read."
        )


class EventTooLarge(ProtocolError):
    """An event is larger than a read may hold in memory, or its header is wrong."""

    def __init__(self, shard: str, offset: int, size: int, limit: int) -> None:
        self.shard, self.offset, self.size, self.limit = shard, offset, size, limit
        super().__init__(
            f"{shard}: the event at offset {offset} says it has {size} bytes, but a read holds {limit} at most. "
            "If it is an event, raise the option max_event_bytes; if not, the stream may be a byte stream."
        )


class ProcessFailed(StreamsError):
    """A background process of the server failed."""

    def __init__(self, name: str, process: str, detail: str = "") -> None:
        self.name, self.process = name, process
        super().__init__(
            f"{name}: its {process} failed: {as_sentence(detail or 'the server gives no cause')} "
            f"See the server's log, and start the {process} again."
        )
