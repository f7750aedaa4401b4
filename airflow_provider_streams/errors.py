"""Every error of this package, in one tree.

    StreamsError
    ├── InvalidRequest           what was asked cannot be done as asked
    │   ├── InvalidName          a name this system cannot have, or one we refuse to read
    │   ├── InvalidWindow        a span of time that is not a window
    │   │   └── OffGrid          a window that is no cell of its reader's grid
    │   ├── WindowsOverlap       a window shares time with covered ones of the same table
    │   ├── LandingMismatch      a reader lands something else than it did before
    │   ├── ChainOrder           a chained window behind which others were read already
    │   ├── NoCutNearby          no cut was recorded near enough to a window's edge
    │   ├── InvalidSchema        a schema, or columns, that no row can be decoded by
    │   ├── SchemasDiffer        topics of one read whose rows cannot have the same columns
    │   ├── SchemaRefused        a schema that a topic or a group does not take
    │   └── MissingDependency    an optional client is not installed
    ├── WindowNotReady           the window's end is not certain yet                       (retryable)
    ├── AccessError              the stream system refuses us
    │   ├── AuthenticationFailed our credentials are missing, wrong or expired
    │   ├── CertificateNotTrusted the server's TLS certificate cannot be trusted
    │   ├── NotAuthorized        we are known, but may not do this
    │   ├── NotFollowed          a server leads us to where we do not go
    │   └── SourceNotFound       the topic, stream or scope does not exist
    ├── SystemUnavailable        no answer, or a passing failure of the server              (retryable)
    │   ├── ConnectionLost       a connection broke, or nothing came in time                (retryable)
    │   ├── ReadStalled          a connection went silent before its split was read         (retryable)
    │   └── UnclearAnswer        the server failed and does not say why                     (retryable)
    ├── ProtocolError            bytes or answers that no server should send
    │   └── CorruptFrame         a frame's checksum or structure is wrong                   (retryable)
    │       ├── MalformedEntry   an entry came as it was stored, but is not what it states
    │       └── EntryTooLarge    an entry is beyond a limit of the connection
    │   ├── FrameTooLong         a frame is beyond a limit of the connection
    │   ├── NotAnEvent           stored bytes are no event
    │   ├── EndsInsideEvent      a range ends before its last event does
    │   └── EventTooLarge        an event is larger than a read may hold in memory
    ├── ProcessFailed            the server gave up something it does in the background
    ├── RetentionAtRisk          the stream may drop events before they are read
    ├── DataLoss                 the stream no longer holds what the window needs
    │   ├── StartTrimmed         the window starts before the first position still held
    │   ├── StartUnproven        nobody can say whether the window's start is still held
    │   └── EventsLost           events inside the window vanished
    ├── BackfillIncomplete       some windows of a backfill are not covered                (retryable)
    ├── FanOutIncomplete         some topics or streams of a source are not landed         (retryable)
    ├── ReceiptMismatch          what was read does not agree with the plan
    ├── PreflightFailed          Spark's side cannot run the read
    ├── FewerRows                a read would land fewer rows than its window holds
    ├── UndecodableEvent         an event's payload is not what its schema says
    ├── TooManyUndecodable       more of a window's events cannot be decoded than may be
    ├── TransformFailed          the user's function failed
    ├── TaskEnded                the task was ended while Spark worked for it                (retryable)
    ├── SinkError                the table could not be written
    │   ├── ForeignTable         the table belongs to another reader, source or journal
    │   ├── RowsDiffer           windows of the table do not hold what their receipts say
    │   ├── LandedMeanwhile      another attempt at the same time landed first                  (retryable)
    │   ├── StoreFull            there is no room for the window's files
    │   ├── TableUnavailable     the store or catalog that keeps the table does not answer      (retryable)
    │   │   └── CredentialsExpired  what the catalog lent for the table's files is no longer valid  (retryable)
    │   └── CommitUnknown        nobody can say whether a commit came through                  (retryable)
    ├── JournalError             the journal cannot be used
    │   └── JournalUnavailable   its database does not answer, or is busy                    (retryable)
    └── PlanMismatch             a plan is not the one it claims to be
        ├── TermsChanged         a pinned plan was made under other terms than are asked now
        └── OtherCluster         a plan was made of another cluster, or of an earlier life of its source

`retryable` says whether the same call may succeed later by itself; Airflow's retry policy reads it. Whatever words an
error is made of, `redaction` takes the secrets out of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from airflow_provider_streams.redaction import redact


class StreamsError(Exception):
    """The root: `retryable` is data, set by the classes below. Its words hold no secret that this process knows."""

    retryable: bool = False

    def __init__(self, *words: object) -> None:
        super().__init__(*(redact(str(one)) for one in words))


class InvalidRequest(StreamsError, ValueError):
    """What was asked cannot be done as asked."""


class InvalidName(InvalidRequest):
    """A name this system cannot have, or one we refuse to read."""

    def __init__(self, name: str, reason: str) -> None:
        self.name, self.reason = name, reason
        super().__init__(f"{name!r:.600} cannot be read: {reason}")


class InvalidWindow(InvalidRequest):
    """A span of time that is not a window."""


class OffGrid(InvalidWindow):
    """A window that is no cell of its reader's grid."""

    def __init__(self, source: object, reader: str, window: object, grid: object, cell: object) -> None:
        self.source, self.reader, self.window, self.grid = source, reader, window, grid
        super().__init__(
            f"{source}: window {window} is none of those that reader {reader!r} lands: its grid is {grid!s}, "
            f"so the window there is {cell}. Ask for that one, read under another reader into another table, or land "
            "all windows of this reader anew (reland=True)."
        )


class WindowsOverlap(InvalidRequest):
    """A window shares time with covered ones of the same table: its rows would be there twice."""

    def __init__(self, source: object, window: object, covered: Sequence[object]) -> None:
        self.source, self.window, self.covered = source, window, tuple(covered)
        shown = ", ".join(map(str, covered[:_OVERLAPS_SHOWN])) + (", .." if len(covered) > _OVERLAPS_SHOWN else "")
        super().__init__(
            f"{source}: window {window} shares time with {len(covered)} that the table holds already: {shown}. Nothing "
            "was read. Ask for one of those; or overlap='replace' takes them out of the table as a whole, so that what "
            "this window does not hold of them is missing again."
        )


_OVERLAPS_SHOWN = 5


LAND_ANEW = "land all windows anew (reland=True sets aside what the table holds, and every window is missing again)"


class LandingMismatch(InvalidRequest):
    """A reader lands something else than it did before: a table of two shapes."""

    def __init__(
        self,
        source: object,
        reader: str,
        kept: object,
        asked: object,
        differences: Sequence[str],
        *,
        hint: str = "",
        anew: str = LAND_ANEW,
    ) -> None:
        self.source, self.reader, self.kept, self.asked = source, reader, kept, asked
        *some, last = [one for one in (hint, "take another reader for the other one", anew) if one]
        super().__init__(
            f"{source}: reader {reader!r} lands in {kept}, and is asked for {asked} ({'; '.join(differences)}). All "
            f"windows of a reader have one landing: {', '.join(some)}{', or ' * bool(some)}{last}."
        )


class ChainOrder(InvalidRequest):
    """A chained window behind which others were planned or read already: their rows would be there twice."""

    def __init__(self, source: object, reader: str, window: object, later: object) -> None:
        self.source, self.reader, self.window, self.later = source, reader, window, later
        super().__init__(
            f"{source}: basis 'chained' reads windows in order, and reader {reader!r} has gone on to {later} already, "
            f"so {window} holds nothing that is not in the table. Set max_active_runs=1. To have other windows, take "
            "another reader and table."
        )


class NoCutNearby(InvalidRequest):
    """No cut was recorded near enough to a window's edge."""

    def __init__(self, source: object, moment: object, detail: str) -> None:
        self.source, self.moment = source, moment
        super().__init__(
            f"{source}: no recorded cut is near enough to {moment}: {detail}. No event is lost: a greater max_skew "
            "moves this edge for both windows beside it, or read between your own Cuts(start, end)."
        )


class InvalidSchema(InvalidRequest):
    """A schema, or columns, that no row can be decoded by."""

    def __init__(self, what: str, reason: str, hint: str = "") -> None:
        self.what, self.reason, self.hint = what, reason, hint
        super().__init__(f"schema: {what}: {reason}. {hint or 'Correct it, or read bytes with value=Bytes().'}")


class SchemasDiffer(InvalidRequest):
    """Topics of one read whose rows cannot have the same columns."""

    def __init__(self, differences: Sequence[str]) -> None:
        self.differences = tuple(differences)
        super().__init__(
            f"the schemas do not fit into one row type: {'; '.join(differences)}. Read these topics as sources of "
            "their own, or read bytes with value=Bytes()."
        )


class SchemaRefused(InvalidRequest):
    """A schema that a topic or a group does not take, or that cannot read what is written there."""

    def __init__(self, source: object, schema: str, policy: str, reason: str = "") -> None:
        self.source, self.schema, self.policy = source, schema, policy
        by = f" by its policy {policy}" if policy else ""
        super().__init__(
            f"{source}: schema {schema} does not fit{by}{_because(reason)}. Change the schema so that old and new "
            "records can be read, or write to another topic or group."
        )


class MissingDependency(InvalidRequest):
    """An optional client is not installed."""

    def __init__(self, module: str, extra: str) -> None:
        self.module, self.extra = module, extra
        super().__init__(
            f"The Python module {module!r} is needed here. "
            f"Install it with: pip install 'airflow-provider-streams[{extra}]'"
        )


class WindowNotReady(StreamsError):
    """The window's end is not certain yet."""

    retryable = True

    def __init__(self, source: object, window: object, reason: str) -> None:
        self.source, self.window, self.reason = source, window, reason
        super().__init__(
            f"{source}: window {window} cannot be read yet: {reason}. "
            "Wait for it with WindowReadySensor, or retry later."
        )


class AccessError(StreamsError):
    """The stream system refuses us."""


class AuthenticationFailed(AccessError):
    """Our credentials are missing, wrong or expired."""

    def __init__(self, where: str, detail: str = "") -> None:
        self.where = where
        super().__init__(
            f"{where} does not accept our credentials{_because(detail)}. Check the connection's password or token."
        )


class CertificateNotTrusted(AccessError):
    """The server's TLS certificate is not signed by an authority that we trust, has expired, or names another host."""

    def __init__(self, where: str, detail: str = "") -> None:
        self.where = where
        super().__init__(
            f"{where}: its certificate is not to be trusted{_because(detail)}. "
            "Set tls_ca_file to the authority that signed it, and call it by a name that it bears."
        )


class NotAuthorized(AccessError):
    """We are known, but may not do this."""

    def __init__(self, where: str, action: str, detail: str = "") -> None:
        self.where, self.action = where, action
        super().__init__(f"{where}: not allowed to {action}{_because(detail)}. Ask for the missing permission.")


class NotFollowed(AccessError):
    """A server leads us to where we do not go: it may be somebody else, or be led itself."""

    def __init__(self, where: str, target: str, cause: str, fix: str = "") -> None:
        self.where, self.target = where, target
        known = "If that is one of the cluster's hosts, add it to allowed_hosts."
        super().__init__(f"{where} leads to {target}: {cause}. {fix or known}")


class SourceNotFound(AccessError):
    """The topic, stream or scope does not exist."""

    def __init__(self, name: str, where: str = "") -> None:
        self.name = name
        at = f" at {where}" if where else ""
        super().__init__(
            f"{name} does not exist{at} (or this user may not see it). Check its spelling; reading never creates it."
        )


class SystemUnavailable(StreamsError):
    """No answer, or a passing failure of the server."""

    retryable = True
    hint: ClassVar[str] = (
        "It may be restarting; retry later. If it stays so, check host, port and TLS of the connection."
    )

    def __init__(self, where: str, detail: str) -> None:
        self.where = where
        super().__init__(f"{where} is not available: {detail}. {self.hint}")


class ConnectionLost(SystemUnavailable):
    """A connection broke, or nothing came in time; another one may do."""


class ReadStalled(SystemUnavailable):
    """A connection went silent before its split was read, or a look at it was over."""

    hint = (
        "If its server is restarting or busy, retry later. If it stays so while the server answers others, the server "
        "cannot read what is stored there, as bytes that no client wrote: its log says why."
    )

    def __init__(self, shard: str, at: object, end: object, seconds: float) -> None:
        self.shard, self.at, self.end, self.seconds = shard, at, end, seconds
        super().__init__(shard, f"nothing came for {seconds:.0f} s at {at} on the way to {end}")


class UnclearAnswer(SystemUnavailable):
    """The server failed and does not say why; it may pass, as its own clients expect."""


class ProtocolError(StreamsError):
    """Bytes or answers that no server should send."""


class CorruptFrame(ProtocolError):
    """A frame's checksum or structure is wrong; `place` is the ledger and the entry in it, where they are known."""

    retryable = True

    def __init__(self, message: str, place: tuple[int, int] | None = None) -> None:
        self.place = place
        super().__init__(message)


class MalformedEntry(CorruptFrame):
    """An entry came as it was stored, but is not what it states."""

    retryable = False

    def __init__(self, topic: str, ledger: int, entry: int, why: str) -> None:
        self.topic, self.why = topic, why
        super().__init__(
            f"{topic}: entry {ledger}:{entry} cannot be decoded: {why}. Its producer wrote it so, and it will stay so. "
            "Read around it: between Cuts(start, end) that end before it and begin behind it.",
            (ledger, entry),
        )


class EntryTooLarge(CorruptFrame):
    """An entry is beyond a limit of the connection."""

    retryable = False

    def __init__(self, topic: str, ledger: int, entry: int, *, what: str, option: str, limit: int) -> None:
        self.topic, self.option, self.limit = topic, option, limit
        super().__init__(
            f"{topic}: entry {ledger}:{entry} is too large: {what}, but {option} is {limit}. To read it, raise "
            f"{option} of the connection (readers need memory for it); or read around it: between Cuts(start, end) "
            "that end before it and begin behind it.",
            (ledger, entry),
        )


class FrameTooLong(ProtocolError):
    """A frame longer than a reader allows, though the broker may; `place` is the ledger and entry in it, if known."""

    def __init__(self, size: int, limit: int, option: str, place: tuple[int, int] | None) -> None:
        self.size, self.limit, self.place = size, limit, place
        super().__init__(f"a frame of {size} bytes; {option} is {limit}: raise it, if this is to be read")


class NotAnEvent(ProtocolError):
    """The bytes at this offset are not an event's header."""

    def __init__(self, shard: str, offset: int, *, first: bool) -> None:
        self.shard, self.offset = shard, offset
        where = "the cut may point inside an event, or the stream" if first else "the stream"
        super().__init__(
            f"{shard}: the bytes at offset {offset} are not an event's header: {where} may be a byte stream, "
            "or a writer stored bytes without framing. Only streams of events can be read."
        )


class EndsInsideEvent(ProtocolError):
    """The range ends before its last event does."""

    def __init__(self, shard: str, offset: int, end: int) -> None:
        self.shard, self.offset, self.end = shard, offset, end
        super().__init__(
            f"{shard}: the range ends at offset {end}, inside the event at {offset}: the end cut is not a place "
            "between two events, or the stream is a byte stream. Take a cut from `latest` or from the journal."
        )


class EventTooLarge(ProtocolError):
    """An event is larger than a read may hold in memory, or its header lies."""

    def __init__(self, shard: str, offset: int, size: int, limit: int) -> None:
        self.shard, self.offset, self.size, self.limit = shard, offset, size, limit
        super().__init__(
            f"{shard}: the event at offset {offset} says it has {size} bytes, a read holds {limit} at most: its header "
            "may be no event's. If it is one, raise the option max_event_bytes."
        )


class ProcessFailed(StreamsError):
    """The server gave up something it does in the background."""

    def __init__(self, name: str, process: str, detail: str = "") -> None:
        self.name, self.process = name, process
        super().__init__(
            f"{name}: its {process} failed: {detail or 'the server gives no cause'}. "
            "See the server's log, and start it again."
        )


class RetentionAtRisk(StreamsError):
    """The stream may drop events before they are read."""

    def __init__(self, source: object, detail: str) -> None:
        self.source = source
        super().__init__(f"{source}: {detail}. Keep data for longer, place a hold, or read sooner.")


class DataLoss(StreamsError):
    """The stream no longer holds what the window needs."""


class StartTrimmed(DataLoss):
    """The window starts before the first position still held."""

    def __init__(self, shard: str, wanted: object, available: object, detail: str = "") -> None:
        self.shard, self.wanted, self.available = shard, wanted, available
        super().__init__(
            f"{shard}: the window starts at {wanted}, the first position still held is {available}"
            f"{_because(detail)}. Move the window, or accept the loss with on_loss='record'."
        )


class StartUnproven(DataLoss):
    """Nobody can say whether the window's start is still held."""

    def __init__(self, shard: str, window: object, reason: str) -> None:
        self.shard, self.window, self.reason = shard, window, reason
        super().__init__(
            f"{shard}: nobody can say whether all of window {window} is still held: {reason}. "
            "Read it from a place that is known, or accept it with on_unproven='land'."
        )


class EventsLost(DataLoss):
    """Events inside the window vanished."""

    def __init__(self, shard: str, start: object, end: object, size: str, cause: str) -> None:
        self.shard, self.start, self.end, self.size, self.cause = shard, start, end, size, cause
        super().__init__(
            f"{shard}: {size} of [{start}, {end}) can no longer be read: {cause}. "
            "Accept the loss with on_loss='record', or restore the data."
        )


class BackfillIncomplete(StreamsError):
    """Some windows of a backfill are not covered; the others are."""

    retryable = True

    def __init__(self, source: object, covered: int, failures: Mapping[str, str], *, retryable: bool) -> None:
        self.source, self.covered, self.failures, self.retryable = source, covered, dict(failures), retryable
        some = list(failures.items())[:_FAILURES_SHOWN]
        shown = [f"{window}: {cause.removesuffix('.')}" for window, cause in some]
        if len(failures) > _FAILURES_SHOWN:
            shown.append(f"and {len(failures) - _FAILURES_SHOWN} more")
        super().__init__(
            f"{source}: {covered} windows are covered, {len(failures)} are not. {'; '.join(shown)}. "
            "Run it again to try those alone; accept what is lost with on_loss='record'."
        )


_FAILURES_SHOWN = 5


class FanOutIncomplete(StreamsError):
    """Some topics or streams of a source are not landed; the others are, each in its own table.

    Of a dry run, which lands none: some could not be. `planned` are the others then.
    """

    retryable = True

    def __init__(
        self,
        source: object,
        span: object,
        landed: int,
        failures: Mapping[str, str],
        *,
        retryable: bool,
        planned: int | None = None,
    ) -> None:
        self.source, self.span, self.landed, self.failures = source, span, landed, dict(failures)
        self.retryable, self.planned = retryable, planned
        if planned is None:
            became, then = f"{landed} are landed, {len(failures)} are not", "Run the task again to try those alone"
        else:
            became, then = f"{planned} could be landed, {len(failures)} could not", "A dry run lands nothing"
        super().__init__(
            f"{source}: of {span}, {became}. {causes_text(failures)}. {then}; accept what is lost with "
            "on_loss='record'."
        )


def causes_text(failures: Mapping[str, str]) -> str:
    """Many failures in one sentence: the first with their causes, further ones by their names."""
    shown = [f"{one}: {cause.removesuffix('.')}" for one, cause in list(failures.items())[:_TABLES_SHOWN]]
    others = list(failures)[_TABLES_SHOWN:]
    if others:
        more = f" and {len(others) - _NAMES_SHOWN} more" if len(others) > _NAMES_SHOWN else ""
        shown.append(f"and {', '.join(others[:_NAMES_SHOWN])}{more}: see the log")
    return "; ".join(shown)


_TABLES_SHOWN = 10
_NAMES_SHOWN = 90


class ReceiptMismatch(StreamsError):
    """What was read does not agree with the plan."""

    def __init__(self, fingerprint: str, problems: list[str]) -> None:
        self.fingerprint, self.problems = fingerprint, problems
        super().__init__(
            f"plan {fingerprint[:12]}: the read does not agree with its plan: {'; '.join(problems)}. "
            "Nothing was committed. Run the task again; if it stays, report it with this message."
        )


class PreflightFailed(StreamsError):
    """Spark's side cannot run the read."""


class FewerRows(StreamsError):
    """A read would land fewer rows than its window holds in the table."""

    def __init__(self, source: object, window: object, held: int, rows: int | None, lost: str = "") -> None:
        self.source, self.window, self.held, self.rows = source, window, held, rows
        leaves = f"this read would leave {rows} of it" if rows is not None else "its new plan cannot hold all of them"
        super().__init__(
            f"{source}: window {window} holds {held} rows in the table, and {leaves}{_because(lost)}. "
            "Nothing was replaced, nor planned anew. Was the stream trimmed since? Were late rows read that this plan "
            "does not reach? If fewer are right, do the same with accept_fewer=True."
        )


class UndecodableEvent(StreamsError):
    """An event's payload is not what its schema says."""

    def __init__(self, shard: str, position: str, version: str, cause: str, others: int = 0) -> None:
        self.shard, self.position, self.version, self.cause, self.others = shard, position, version, cause, others
        more = f", and {others} more after it in its batch" if others else ""
        by = f" by schema version {version}" if version else ""
        super().__init__(
            f"{shard}: the event at {position} cannot be decoded{by}: {cause}{more}. Nothing was landed. Keep such "
            "events aside with on_undecodable='quarantine' (in a ParquetSink), or leave them out with 'drop'; or "
            "correct the schema."
        )


class TooManyUndecodable(StreamsError):
    """More of a window's events cannot be decoded than may be."""

    def __init__(self, source: object, window: object, bad: int, events: int, most: float) -> None:
        self.source, self.window, self.bad, self.events, self.most = source, window, bad, events, most
        super().__init__(
            f"{source}: {bad} of {events} events of window {window} cannot be decoded, more than max_undecodable="
            f"{most} allows. Nothing was landed. Look at the schema, or allow more."
        )


class TransformFailed(StreamsError):
    """The user's function failed, where it was called or on a row in one of Spark's tasks."""

    def __init__(self, transform: str, window: object, cause: str) -> None:
        self.transform, self.window, self.cause = transform, window, cause
        super().__init__(
            f"transform {transform} failed on window {window}: {cause}. Nothing was landed. "
            "Its traceback is in the log: mend the function, then clear the task."
        )


class TaskEnded(StreamsError):
    """The task was ended from outside while Spark worked for it: killed, cleared, timed out, or its worker stopped."""

    retryable = True

    def __init__(self) -> None:
        super().__init__(
            "the task was ended from outside (killed, cleared, marked, or its worker stopped) while Spark worked for "
            "it. Nothing was landed after that; clear the task to read the window."
        )


class SinkError(StreamsError):
    """The table could not be written."""

    def __init__(self, target: str, detail: str) -> None:
        self.target = target
        super().__init__(f"{target}: {detail}")


class ForeignTable(SinkError):
    """The table belongs to another reader, source or journal, or nobody knows to whom."""


class RowsDiffer(SinkError):
    """Windows do not hold the rows that their receipts, or the table itself, say. They stay as they are."""


class LandedMeanwhile(SinkError):
    """Another attempt landed the window, or one that shares time with it, after this one began. Nothing was changed."""

    retryable = True

    def __init__(self, target: str, window: object, landed: object) -> None:
        self.window, self.landed = window, landed
        what = "it"
        hint = "Is the same task running twice? Landing it once more settles it"
        if str(landed) != str(window):
            what = f"{landed}, another window that shares time with it,"
            hint = "Read one of the two; overlap='replace' takes the other one out of the table as a whole"
        super().__init__(
            target,
            f"window {window} cannot be put in place: {what} was landed by another run after this one began. {hint}",
        )


class TableUnavailable(SinkError):
    """The store or the catalog that keeps the table does not answer, or fails for a while. Nothing was changed."""

    retryable = True


class CredentialsExpired(TableUnavailable):
    """What the catalog lent for the table's files is no longer valid; each attempt is lent new ones."""

    def __init__(self, target: str, detail: str) -> None:
        super().__init__(
            target,
            f"the credentials that its catalog lent are over: {detail}. The next attempt is lent new ones; where "
            "they do not last as long as a read, land shorter windows, or let the catalog lend them for longer",
        )


class StoreFull(SinkError):
    """There is no room for the window's files. Nothing was changed."""

    def __init__(self, target: str, detail: str) -> None:
        super().__init__(target, f"there is no room left: {detail}. Free some, then land the window again")


class CommitUnknown(SinkError):
    """A commit was sent, and nobody can say whether it came through: the table has the old window or the new one."""

    retryable = True

    def __init__(self, target: str, detail: str) -> None:
        super().__init__(
            target,
            f"whether the commit came through cannot be known now: {detail}. The window is as it was, or replaced as a "
            "whole; landing it again settles it, and its files stay where they are until then",
        )


class JournalError(StreamsError):
    """The journal cannot be used."""


class JournalUnavailable(JournalError):
    """Its database does not answer, or is busy."""

    retryable = True


class PlanMismatch(StreamsError):
    """A plan is not the one it claims to be."""


class TermsChanged(PlanMismatch):
    """A pinned plan was made under other terms than are asked now."""

    def __init__(self, source: object, window: object, changes: Sequence[str]) -> None:
        self.source, self.window, self.changes = source, window, tuple(changes)
        super().__init__(
            f"{source}: the plan of window {window} was pinned under other terms: {'; '.join(changes)}. Ask as before, "
            "or make a new plan with replan=True."
        )


class OtherCluster(PlanMismatch):
    """A plan was made of another cluster, or of an earlier life of its source: its positions mean nothing here."""

    def __init__(self, source: object, planned: str, found: str) -> None:
        self.source, self.planned, self.found = source, planned, found
        super().__init__(
            f"{source}: the plan was made of {planned}, but what answers is {found}. Positions are valid on one "
            "cluster and for one life of a source. Look where the connection leads; if the source was made anew on "
            "purpose, plan its windows anew (replan=True)."
        )


def _because(detail: str) -> str:
    return f" ({detail})" if detail else ""


def error_class(name: str) -> type[StreamsError]:
    """The class of this name, as other processes tell it; `StreamsError` for a name that is none of this tree."""
    found = globals().get(name)
    return found if isinstance(found, type) and issubclass(found, StreamsError) else StreamsError
