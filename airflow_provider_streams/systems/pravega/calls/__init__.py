"""Every call to the controller as data: what to send, and how its answer becomes a value.

The blocking and the asynchronous edge (`controller.py`) send these; neither knows one call from another. Rules that
need several are beside this folder: `administration`, `cuts`, `hold`, `questions`, `scaling`.
"""

from __future__ import annotations

from airflow_provider_streams.systems.pravega.calls.call import Call, KeyedSegment
from airflow_provider_streams.systems.pravega.calls.changes import (
    create_scope,
    create_stream,
    delete_scope,
    delete_stream,
    scale,
    scale_done,
    seal_stream,
    stream_settings,
    truncate_stream,
    update_stream,
)
from airflow_provider_streams.systems.pravega.calls.holds import (
    Group,
    create_hold,
    delete_hold,
    find_hold,
    list_holds,
    move_hold,
)
from airflow_provider_streams.systems.pravega.calls.listing import (
    Page,
    list_scopes,
    list_streams,
    scope_exists,
    stream_exists,
)
from airflow_provider_streams.systems.pravega.calls.segments import (
    Access,
    current_segments,
    cut_covers,
    delegation_token,
    epoch_segments,
    head,
    owners_after,
    segment_open,
    segments_between,
    store_of,
    successors,
)
from airflow_provider_streams.systems.pravega.calls.settings import (
    NO_LIMIT,
    Retention,
    RetentionKind,
    Scaling,
    ScalingKind,
    Settings,
)
from airflow_provider_streams.systems.pravega.calls.transactions import (
    NO_TIME,
    Transaction,
    TransactionState,
    abort_transaction,
    begin_transaction,
    commit_transaction,
    ping_transaction,
    transaction_state,
)

__all__ = [
    "NO_LIMIT",
    "NO_TIME",
    "Access",
    "Call",
    "Group",
    "KeyedSegment",
    "Page",
    "Retention",
    "RetentionKind",
    "Scaling",
    "ScalingKind",
    "Settings",
    "Transaction",
    "TransactionState",
    "abort_transaction",
    "begin_transaction",
    "commit_transaction",
    "create_hold",
    "create_scope",
    "create_stream",
    "current_segments",
    "cut_covers",
    "delegation_token",
    "delete_hold",
    "delete_scope",
    "delete_stream",
    "epoch_segments",
    "find_hold",
    "head",
    "list_holds",
    "list_scopes",
    "list_streams",
    "move_hold",
    "owners_after",
    "ping_transaction",
    "scale",
    "scale_done",
    "scope_exists",
    "seal_stream",
    "segment_open",
    "segments_between",
    "store_of",
    "stream_exists",
    "stream_settings",
    "successors",
    "transaction_state",
    "truncate_stream",
    "update_stream",
]
