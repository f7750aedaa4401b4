"""What a broker says that cannot tell where a topic ends."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.systems.pulsar.client.protobuf import as_int32
from airflow_provider_streams.systems.pulsar.client.wire import commands_pb2 as pb
from airflow_provider_streams.systems.pulsar.client.wire.probe_consumers import (
    EntryHead,
    ProbePoint,
    RunningProbe,
    _flow,
    _ProbeRound,
)
from airflow_provider_streams.systems.pulsar.reading.decode.headers.message_metadata import EntryMetadata


def round_that_asked() -> Any:
    connection: Any = SimpleNamespace(where="pulsar://broker:6650")
    return _ProbeRound(connection, {4: RunningProbe(ProbePoint("persistent://a/b/c", 7, 0))}, {1: (4, False)})


def refusal(message: bytes) -> pb.CommandError:
    return pb.CommandError(request_id=1, error=pb.MetadataError, message=message)


def test_a_broker_that_cannot_read_the_last_entry_is_as_good_as_silent():
    round_that_asked()._handle(refusal(b"Failed to get batch size for entry java.lang.IllegalStateException"))


def test_another_answer_is_an_error_of_the_look():
    with pytest.raises(StreamsError, match="look at persistent://a/b/c"):
        round_that_asked()._handle(refusal(b"Metadata store is not there"))


@pytest.mark.parametrize("count", [1, 1_000_000, (1 << 31) - 1, -1, -(1 << 31)])
def test_whatever_a_producer_counts_the_broker_may_send_one_message_more(count):
    """A broker subtracts what the producer stated, and adds what we allow: both in 32 bits."""
    asked = RunningProbe(ProbePoint("persistent://a/b/c", 7, 0, wanted=9))
    permits = 9
    for entry in range(8):
        asked.note_entry(EntryHead(7, entry, EntryMetadata(1, num_messages=count)))
        permits = as_int32(permits - count)
    if more := asked.permits():
        sent = pb.CommandFlow.FromString(_flow(1, more).SerializeToString())
        assert as_int32(permits + sent.messagePermits) == 1
    else:
        assert count < 0 or permits == 1
