from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Access(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ACCESS_UNSPECIFIED: _ClassVar[Access]
    ACCESS_NONE: _ClassVar[Access]
    ACCESS_ANY: _ClassVar[Access]
    ACCESS_READ: _ClassVar[Access]
    ACCESS_WRITE: _ClassVar[Access]
    ACCESS_READ_WRITE: _ClassVar[Access]
ACCESS_UNSPECIFIED: Access
ACCESS_NONE: Access
ACCESS_ANY: Access
ACCESS_READ: Access
ACCESS_WRITE: Access
ACCESS_READ_WRITE: Access

class StatusAnswer(_message.Message):
    __slots__ = ("status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    status: int
    def __init__(self, status: _Optional[int] = ...) -> None: ...

class BoolAnswer(_message.Message):
    __slots__ = ("value",)
    VALUE_FIELD_NUMBER: _ClassVar[int]
    value: bool
    def __init__(self, value: _Optional[bool] = ...) -> None: ...

class StreamName(_message.Message):
    __slots__ = ("scope", "stream", "access")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    STREAM_FIELD_NUMBER: _ClassVar[int]
    ACCESS_FIELD_NUMBER: _ClassVar[int]
    scope: str
    stream: str
    access: Access
    def __init__(self, scope: _Optional[str] = ..., stream: _Optional[str] = ..., access: _Optional[_Union[Access, str]] = ...) -> None: ...

class SegmentKey(_message.Message):
    __slots__ = ("stream", "segment_id")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_ID_FIELD_NUMBER: _ClassVar[int]
    stream: StreamName
    segment_id: int
    def __init__(self, stream: _Optional[_Union[StreamName, _Mapping]] = ..., segment_id: _Optional[int] = ...) -> None: ...

class ScopeKey(_message.Message):
    __slots__ = ("scope",)
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    scope: str
    def __init__(self, scope: _Optional[str] = ...) -> None: ...

class PageToken(_message.Message):
    __slots__ = ("token",)
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    token: str
    def __init__(self, token: _Optional[str] = ...) -> None: ...

class CutMessage(_message.Message):
    __slots__ = ("stream", "offsets")
    class OffsetsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: int
        def __init__(self, key: _Optional[int] = ..., value: _Optional[int] = ...) -> None: ...
    STREAM_FIELD_NUMBER: _ClassVar[int]
    OFFSETS_FIELD_NUMBER: _ClassVar[int]
    stream: StreamName
    offsets: _containers.ScalarMap[int, int]
    def __init__(self, stream: _Optional[_Union[StreamName, _Mapping]] = ..., offsets: _Optional[_Mapping[int, int]] = ...) -> None: ...

class CutPair(_message.Message):
    __slots__ = ("stream", "start", "end")
    class StartEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: int
        def __init__(self, key: _Optional[int] = ..., value: _Optional[int] = ...) -> None: ...
    class EndEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: int
        def __init__(self, key: _Optional[int] = ..., value: _Optional[int] = ...) -> None: ...
    STREAM_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    stream: StreamName
    start: _containers.ScalarMap[int, int]
    end: _containers.ScalarMap[int, int]
    def __init__(self, stream: _Optional[_Union[StreamName, _Mapping]] = ..., start: _Optional[_Mapping[int, int]] = ..., end: _Optional[_Mapping[int, int]] = ...) -> None: ...

class HeadQuery(_message.Message):
    __slots__ = ("stream", "timestamp")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    stream: StreamName
    timestamp: int
    def __init__(self, stream: _Optional[_Union[StreamName, _Mapping]] = ..., timestamp: _Optional[int] = ...) -> None: ...

class SegmentOffset(_message.Message):
    __slots__ = ("segment", "offset")
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    segment: SegmentKey
    offset: int
    def __init__(self, segment: _Optional[_Union[SegmentKey, _Mapping]] = ..., offset: _Optional[int] = ...) -> None: ...

class HeadAnswer(_message.Message):
    __slots__ = ("positions", "token")
    POSITIONS_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    positions: _containers.RepeatedCompositeFieldContainer[SegmentOffset]
    token: str
    def __init__(self, positions: _Optional[_Iterable[_Union[SegmentOffset, _Mapping]]] = ..., token: _Optional[str] = ...) -> None: ...

class OwnedRange(_message.Message):
    __slots__ = ("segment", "low", "high")
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    segment: SegmentKey
    low: float
    high: float
    def __init__(self, segment: _Optional[_Union[SegmentKey, _Mapping]] = ..., low: _Optional[float] = ..., high: _Optional[float] = ...) -> None: ...

class OwnedRanges(_message.Message):
    __slots__ = ("ranges", "token")
    RANGES_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    ranges: _containers.RepeatedCompositeFieldContainer[OwnedRange]
    token: str
    def __init__(self, ranges: _Optional[_Iterable[_Union[OwnedRange, _Mapping]]] = ..., token: _Optional[str] = ...) -> None: ...

class EpochQuery(_message.Message):
    __slots__ = ("stream", "epoch")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    stream: StreamName
    epoch: int
    def __init__(self, stream: _Optional[_Union[StreamName, _Mapping]] = ..., epoch: _Optional[int] = ...) -> None: ...

class SegmentKeys(_message.Message):
    __slots__ = ("segments", "token")
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    segments: _containers.RepeatedCompositeFieldContainer[SegmentKey]
    token: str
    def __init__(self, segments: _Optional[_Iterable[_Union[SegmentKey, _Mapping]]] = ..., token: _Optional[str] = ...) -> None: ...

class Successor(_message.Message):
    __slots__ = ("segment", "predecessors")
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    PREDECESSORS_FIELD_NUMBER: _ClassVar[int]
    segment: OwnedRange
    predecessors: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, segment: _Optional[_Union[OwnedRange, _Mapping]] = ..., predecessors: _Optional[_Iterable[int]] = ...) -> None: ...

class Successors(_message.Message):
    __slots__ = ("entries", "token")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[Successor]
    token: str
    def __init__(self, entries: _Optional[_Iterable[_Union[Successor, _Mapping]]] = ..., token: _Optional[str] = ...) -> None: ...

class Node(_message.Message):
    __slots__ = ("host", "port")
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    host: str
    port: int
    def __init__(self, host: _Optional[str] = ..., port: _Optional[int] = ...) -> None: ...

class TokenAnswer(_message.Message):
    __slots__ = ("token",)
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    token: str
    def __init__(self, token: _Optional[str] = ...) -> None: ...

class ScopeQuery(_message.Message):
    __slots__ = ("page",)
    PAGE_FIELD_NUMBER: _ClassVar[int]
    page: PageToken
    def __init__(self, page: _Optional[_Union[PageToken, _Mapping]] = ...) -> None: ...

class ScopePage(_message.Message):
    __slots__ = ("scopes", "page")
    SCOPES_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    scopes: _containers.RepeatedScalarFieldContainer[str]
    page: PageToken
    def __init__(self, scopes: _Optional[_Iterable[str]] = ..., page: _Optional[_Union[PageToken, _Mapping]] = ...) -> None: ...

class StreamQuery(_message.Message):
    __slots__ = ("scope", "page")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    scope: ScopeKey
    page: PageToken
    def __init__(self, scope: _Optional[_Union[ScopeKey, _Mapping]] = ..., page: _Optional[_Union[PageToken, _Mapping]] = ...) -> None: ...

class TaggedStreamQuery(_message.Message):
    __slots__ = ("scope", "tag", "page")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    TAG_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    scope: ScopeKey
    tag: str
    page: PageToken
    def __init__(self, scope: _Optional[_Union[ScopeKey, _Mapping]] = ..., tag: _Optional[str] = ..., page: _Optional[_Union[PageToken, _Mapping]] = ...) -> None: ...

class StreamPage(_message.Message):
    __slots__ = ("streams", "page", "status")
    STREAMS_FIELD_NUMBER: _ClassVar[int]
    PAGE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    streams: _containers.RepeatedCompositeFieldContainer[StreamName]
    page: PageToken
    status: int
    def __init__(self, streams: _Optional[_Iterable[_Union[StreamName, _Mapping]]] = ..., page: _Optional[_Union[PageToken, _Mapping]] = ..., status: _Optional[int] = ...) -> None: ...

class Scaling(_message.Message):
    __slots__ = ("kind", "target_rate", "factor", "min_segments")
    KIND_FIELD_NUMBER: _ClassVar[int]
    TARGET_RATE_FIELD_NUMBER: _ClassVar[int]
    FACTOR_FIELD_NUMBER: _ClassVar[int]
    MIN_SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    kind: int
    target_rate: int
    factor: int
    min_segments: int
    def __init__(self, kind: _Optional[int] = ..., target_rate: _Optional[int] = ..., factor: _Optional[int] = ..., min_segments: _Optional[int] = ...) -> None: ...

class Retention(_message.Message):
    __slots__ = ("kind", "minimum", "maximum")
    KIND_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_FIELD_NUMBER: _ClassVar[int]
    MAXIMUM_FIELD_NUMBER: _ClassVar[int]
    kind: int
    minimum: int
    maximum: int
    def __init__(self, kind: _Optional[int] = ..., minimum: _Optional[int] = ..., maximum: _Optional[int] = ...) -> None: ...

class Tags(_message.Message):
    __slots__ = ("names",)
    NAMES_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, names: _Optional[_Iterable[str]] = ...) -> None: ...

class StreamSettings(_message.Message):
    __slots__ = ("stream", "scaling", "retention", "tags", "timestamp_aggregation_ms", "rollover_bytes")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    SCALING_FIELD_NUMBER: _ClassVar[int]
    RETENTION_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_AGGREGATION_MS_FIELD_NUMBER: _ClassVar[int]
    ROLLOVER_BYTES_FIELD_NUMBER: _ClassVar[int]
    stream: StreamName
    scaling: Scaling
    retention: Retention
    tags: Tags
    timestamp_aggregation_ms: int
    rollover_bytes: int
    def __init__(self, stream: _Optional[_Union[StreamName, _Mapping]] = ..., scaling: _Optional[_Union[Scaling, _Mapping]] = ..., retention: _Optional[_Union[Retention, _Mapping]] = ..., tags: _Optional[_Union[Tags, _Mapping]] = ..., timestamp_aggregation_ms: _Optional[int] = ..., rollover_bytes: _Optional[int] = ...) -> None: ...

class KeyRange(_message.Message):
    __slots__ = ("low", "high")
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    low: float
    high: float
    def __init__(self, low: _Optional[float] = ..., high: _Optional[float] = ...) -> None: ...

class ScaleOrder(_message.Message):
    __slots__ = ("stream", "sealed", "ranges", "timestamp")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    SEALED_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    stream: StreamName
    sealed: _containers.RepeatedScalarFieldContainer[int]
    ranges: _containers.RepeatedCompositeFieldContainer[KeyRange]
    timestamp: int
    def __init__(self, stream: _Optional[_Union[StreamName, _Mapping]] = ..., sealed: _Optional[_Iterable[int]] = ..., ranges: _Optional[_Iterable[_Union[KeyRange, _Mapping]]] = ..., timestamp: _Optional[int] = ...) -> None: ...

class ScaleAnswer(_message.Message):
    __slots__ = ("status", "segments", "epoch")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    status: int
    segments: _containers.RepeatedCompositeFieldContainer[OwnedRange]
    epoch: int
    def __init__(self, status: _Optional[int] = ..., segments: _Optional[_Iterable[_Union[OwnedRange, _Mapping]]] = ..., epoch: _Optional[int] = ...) -> None: ...

class ScaleQuery(_message.Message):
    __slots__ = ("stream", "epoch")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    stream: StreamName
    epoch: int
    def __init__(self, stream: _Optional[_Union[StreamName, _Mapping]] = ..., epoch: _Optional[int] = ...) -> None: ...

class TransactionId(_message.Message):
    __slots__ = ("high", "low")
    HIGH_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    high: int
    low: int
    def __init__(self, high: _Optional[int] = ..., low: _Optional[int] = ...) -> None: ...

class TransactionOrder(_message.Message):
    __slots__ = ("stream", "lease_ms")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    stream: StreamName
    lease_ms: int
    def __init__(self, stream: _Optional[_Union[StreamName, _Mapping]] = ..., lease_ms: _Optional[int] = ...) -> None: ...

class TransactionAnswer(_message.Message):
    __slots__ = ("id", "segments", "token")
    ID_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    id: TransactionId
    segments: _containers.RepeatedCompositeFieldContainer[OwnedRange]
    token: str
    def __init__(self, id: _Optional[_Union[TransactionId, _Mapping]] = ..., segments: _Optional[_Iterable[_Union[OwnedRange, _Mapping]]] = ..., token: _Optional[str] = ...) -> None: ...

class TransactionKey(_message.Message):
    __slots__ = ("stream", "id", "writer", "timestamp")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    WRITER_FIELD_NUMBER: _ClassVar[int]
    TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    stream: StreamName
    id: TransactionId
    writer: str
    timestamp: int
    def __init__(self, stream: _Optional[_Union[StreamName, _Mapping]] = ..., id: _Optional[_Union[TransactionId, _Mapping]] = ..., writer: _Optional[str] = ..., timestamp: _Optional[int] = ...) -> None: ...

class TransactionPing(_message.Message):
    __slots__ = ("stream", "id", "lease_ms")
    STREAM_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    LEASE_MS_FIELD_NUMBER: _ClassVar[int]
    stream: StreamName
    id: TransactionId
    lease_ms: int
    def __init__(self, stream: _Optional[_Union[StreamName, _Mapping]] = ..., id: _Optional[_Union[TransactionId, _Mapping]] = ..., lease_ms: _Optional[int] = ...) -> None: ...

class GroupSettings(_message.Message):
    __slots__ = ("scope", "name", "refresh_ms", "checkpoint_ms", "outstanding_checkpoints", "retention", "generation", "group_id", "start", "end", "rollover_bytes")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    REFRESH_MS_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_MS_FIELD_NUMBER: _ClassVar[int]
    OUTSTANDING_CHECKPOINTS_FIELD_NUMBER: _ClassVar[int]
    RETENTION_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    ROLLOVER_BYTES_FIELD_NUMBER: _ClassVar[int]
    scope: str
    name: str
    refresh_ms: int
    checkpoint_ms: int
    outstanding_checkpoints: int
    retention: int
    generation: int
    group_id: str
    start: _containers.RepeatedCompositeFieldContainer[CutMessage]
    end: _containers.RepeatedCompositeFieldContainer[CutMessage]
    rollover_bytes: int
    def __init__(self, scope: _Optional[str] = ..., name: _Optional[str] = ..., refresh_ms: _Optional[int] = ..., checkpoint_ms: _Optional[int] = ..., outstanding_checkpoints: _Optional[int] = ..., retention: _Optional[int] = ..., generation: _Optional[int] = ..., group_id: _Optional[str] = ..., start: _Optional[_Iterable[_Union[CutMessage, _Mapping]]] = ..., end: _Optional[_Iterable[_Union[CutMessage, _Mapping]]] = ..., rollover_bytes: _Optional[int] = ...) -> None: ...

class GroupKey(_message.Message):
    __slots__ = ("scope", "name", "group_id", "generation")
    SCOPE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    scope: str
    name: str
    group_id: str
    generation: int
    def __init__(self, scope: _Optional[str] = ..., name: _Optional[str] = ..., group_id: _Optional[str] = ..., generation: _Optional[int] = ...) -> None: ...

class GroupAnswer(_message.Message):
    __slots__ = ("settings", "status")
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    settings: GroupSettings
    status: int
    def __init__(self, settings: _Optional[_Union[GroupSettings, _Mapping]] = ..., status: _Optional[int] = ...) -> None: ...

class CreatedGroup(_message.Message):
    __slots__ = ("status", "settings")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    status: int
    settings: GroupSettings
    def __init__(self, status: _Optional[int] = ..., settings: _Optional[_Union[GroupSettings, _Mapping]] = ...) -> None: ...

class SubscriberCut(_message.Message):
    __slots__ = ("subscriber", "generation", "group_id", "cut")
    SUBSCRIBER_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    GROUP_ID_FIELD_NUMBER: _ClassVar[int]
    CUT_FIELD_NUMBER: _ClassVar[int]
    subscriber: str
    generation: int
    group_id: str
    cut: CutMessage
    def __init__(self, subscriber: _Optional[str] = ..., generation: _Optional[int] = ..., group_id: _Optional[str] = ..., cut: _Optional[_Union[CutMessage, _Mapping]] = ...) -> None: ...

class Subscribers(_message.Message):
    __slots__ = ("names", "status")
    NAMES_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    status: int
    def __init__(self, names: _Optional[_Iterable[str]] = ..., status: _Optional[int] = ...) -> None: ...
