"""Every error of this package, in one tree. Import errors from here: the modules only order them.

    StreamsError
    ├── InvalidRequest                 the request cannot be carried out as given
    │   ├── InvalidName                a name that this system cannot have, or that this package does not read
    │   ├── InvalidWindow              a span of time that is not a window
    │   │   └── WindowNotAligned       a window that is no cell of its reader's window schedule
    │   ├── WindowsOverlap             a window shares time with covered ones of the same table
    │   ├── LandingMismatch            a reader lands something else than it did before
    │   ├── ChainOutOfOrder            a chained window that comes before windows already planned
    │   ├── NoCutNearby                no cut was recorded near enough to a window's edge
    │   ├── InvalidSchema              a schema, or columns, that cannot decode any row
    │   ├── IncompatibleSchemas        topics of one read whose rows cannot have the same columns
    │   ├── MultipleRecordTypes        a topic or a group that holds several record types
    │   ├── SchemaRefused              a schema that a topic or a group does not take
    │   └── MissingDependency          an optional client is not installed
    ├── WindowNotReady                 the window's end is not certain yet                             (retryable)
    ├── AccessError                    the stream system refuses us
    │   ├── AuthenticationFailed       our credentials are missing, wrong or expired
    │   ├── CertificateNotTrusted      the server's TLS certificate cannot be trusted
    │   ├── NotAuthorized              we are known, but may not do this
    │   ├── RedirectRefused            a server leads to a host that the connection does not allow
    │   └── SourceDeleted              the source was deleted before a cut of the window's end was recorded
    ├── SourceNotFound                 the topic, stream or scope does not exist
    ├── SystemUnavailable              no answer, or a temporary failure of the server                 (retryable)
    │   ├── ConnectionLost             a connection broke, or nothing came in time                     (retryable)
    │   ├── ReadStalled                a connection went silent before its split was read              (retryable)
    │   ├── SparkUnavailable           Spark or its cluster does not answer, or ended                  (retryable)
    │   └── UnknownServerError         the server failed and does not say why                          (retryable)
    ├── ProtocolError                  a server sent bytes or an answer that none should send
    │   ├── CorruptFrame               a frame's checksum or structure is wrong                        (retryable)
    │   │   ├── MalformedEntry         an entry arrived as stored, but its content contradicts its header
    │   │   └── EntryTooLarge          an entry is larger than a limit of the connection
    │   ├── FrameTooLong               a frame is longer than a limit of the connection
    │   ├── CutNotAtEventBoundary      a cut is inside an event, or the stream holds none
    │   └── EventTooLarge              an event is larger than a read may hold in memory
    ├── ProcessFailed                  a background process of the server failed
    ├── RetentionAtRisk                the stream may drop events before they are read
    ├── DataLoss                       the stream no longer holds what the window needs
    │   ├── StartTrimmed               the window starts before the first position still held
    │   ├── StartUnproven              nothing proves that the window's start is still held
    │   └── EventsLost                 events inside the window vanished
    ├── BackfillIncomplete             some windows of a backfill are not covered                      (retryable)
    ├── FanOutIncomplete               some topics or streams of a source are not landed               (retryable)
    ├── ReceiptMismatch                what was read does not agree with the plan
    ├── PreflightFailed                Spark's side cannot run the read
    ├── SetupNotReady                  doctor found errors in a set-up
    ├── RowCountDecreased              a read would land fewer rows than its window holds
    ├── DecodeError                    an event's payload is not what its schema says
    ├── UnplannedColumns               rows of a window have columns that its plan lacks
    ├── TooManyDecodeErrors            more of a window's events cannot be decoded than allowed
    ├── TransformFailed                the user's function failed
    ├── TaskCancelled                  the task was ended while Spark worked for it                    (retryable)
    ├── SinkError                      the table could not be written
    │   ├── TableOwnedByOther          the table belongs to another reader, source or journal
    │   │   └── TableRecreated         another run of the reader made the table again during this one  (retryable)
    │   ├── RowsDiffer                 windows of the table do not hold what their receipts say
    │   ├── ConcurrentCommit           another attempt at the same time landed first                   (retryable)
    │   ├── TableUnavailable           the store or catalog that keeps the table does not answer       (retryable)
    │   │   └── CredentialsExpired     credentials that the catalog vended are no longer valid         (retryable)
    │   ├── StorageFull                there is no room for the window's files
    │   └── CommitStateUnknown         a commit was sent, and its result is unknown                    (retryable)
    ├── JournalError                   the journal cannot be used
    │   └── JournalUnavailable         its database does not answer, or is busy                        (retryable)
    └── PlanMismatch                   a plan is not the one it claims to be
        ├── PlanOptionsChanged         the pinned plan of a window was made with other options
        └── SourceReplaced             a plan was made for another cluster, or for an earlier incarnation of its source

`retryable` says whether the same call may succeed later without a change. Airflow's retry policy reads it. The module
`redaction` removes secrets from every message.
"""

from __future__ import annotations

from airflow_provider_streams.errors.base import (
    DOCTOR_HINT,
    StreamsError,
    as_clause,
    as_sentence,
    foreseen,
)
from airflow_provider_streams.errors.invalid_request import (
    FULL_REFRESH_HINT,
    ChainOutOfOrder,
    InvalidName,
    InvalidRequest,
    InvalidWindow,
    LandingMismatch,
    MissingDependency,
    NoCutNearby,
    WindowNotAligned,
    WindowNotReady,
    WindowsOverlap,
)
from airflow_provider_streams.errors.journal import (
    JournalError,
    JournalUnavailable,
    PlanMismatch,
    PlanOptionsChanged,
    SourceReplaced,
)
from airflow_provider_streams.errors.landing import (
    CommitStateUnknown,
    ConcurrentCommit,
    CredentialsExpired,
    RowCountDecreased,
    RowsDiffer,
    SinkError,
    StorageFull,
    TableOwnedByOther,
    TableRecreated,
    TableUnavailable,
)
from airflow_provider_streams.errors.lost_data import (
    DataLoss,
    EventsLost,
    RetentionAtRisk,
    StartTrimmed,
    StartUnproven,
)
from airflow_provider_streams.errors.payloads import (
    NO_BRANCH,
    UNFIT,
    DecodeError,
    IncompatibleSchemas,
    InvalidSchema,
    MultipleRecordTypes,
    SchemaRefused,
    TooManyDecodeErrors,
    UnplannedColumns,
)
from airflow_provider_streams.errors.run_failures import (
    BackfillIncomplete,
    FanOutIncomplete,
    PreflightFailed,
    ReceiptMismatch,
    SetupNotReady,
    TaskCancelled,
    TransformFailed,
    causes_text,
)
from airflow_provider_streams.errors.servers import (
    AccessError,
    AuthenticationFailed,
    CertificateNotTrusted,
    ConnectionLost,
    CorruptFrame,
    CutNotAtEventBoundary,
    EntryTooLarge,
    EventTooLarge,
    FrameTooLong,
    MalformedEntry,
    NotAuthorized,
    ProcessFailed,
    ProtocolError,
    ReadStalled,
    RedirectRefused,
    SourceDeleted,
    SourceNotFound,
    SparkUnavailable,
    SystemUnavailable,
    UnknownServerError,
)

__all__ = [
    "DOCTOR_HINT",
    "FULL_REFRESH_HINT",
    "NO_BRANCH",
    "UNFIT",
    "AccessError",
    "AuthenticationFailed",
    "BackfillIncomplete",
    "CertificateNotTrusted",
    "ChainOutOfOrder",
    "CommitStateUnknown",
    "ConcurrentCommit",
    "ConnectionLost",
    "CorruptFrame",
    "CredentialsExpired",
    "CutNotAtEventBoundary",
    "DataLoss",
    "DecodeError",
    "EntryTooLarge",
    "EventTooLarge",
    "EventsLost",
    "FanOutIncomplete",
    "FrameTooLong",
    "IncompatibleSchemas",
    "InvalidName",
    "InvalidRequest",
    "InvalidSchema",
    "InvalidWindow",
    "JournalError",
    "JournalUnavailable",
    "LandingMismatch",
    "MalformedEntry",
    "MissingDependency",
    "MultipleRecordTypes",
    "NoCutNearby",
    "NotAuthorized",
    "PlanMismatch",
    "PlanOptionsChanged",
    "PreflightFailed",
    "ProcessFailed",
    "ProtocolError",
    "ReadStalled",
    "ReceiptMismatch",
    "RedirectRefused",
    "RetentionAtRisk",
    "RowCountDecreased",
    "RowsDiffer",
    "SchemaRefused",
    "SetupNotReady",
    "SinkError",
    "SourceDeleted",
    "SourceNotFound",
    "SourceReplaced",
    "SparkUnavailable",
    "StartTrimmed",
    "StartUnproven",
    "StorageFull",
    "StreamsError",
    "SystemUnavailable",
    "TableOwnedByOther",
    "TableRecreated",
    "TableUnavailable",
    "TaskCancelled",
    "TooManyDecodeErrors",
    "TransformFailed",
    "UnknownServerError",
    "UnplannedColumns",
    "WindowNotAligned",
    "WindowNotReady",
    "WindowsOverlap",
    "as_clause",
    "as_sentence",
    "causes_text",
    "error_class",
    "foreseen",
]

# Spark, pickle and logs name an error by its module: this one, whichever module defines the class
for _one in tuple(globals().values()):
    if isinstance(_one, type) and issubclass(_one, StreamsError):
        _one.__module__ = __name__


def error_class(name: str) -> type[StreamsError]:
    """The class of this name, which another process reported; `StreamsError` if this tree has none."""
    found = globals().get(name)
    return found if isinstance(found, type) and issubclass(found, StreamsError) else StreamsError
