"""What a broker says that cannot tell where a topic ends."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.systems.pulsar.wire.commands import Error
from airflow_provider_streams.systems.pulsar.wire.looking import Looking, Place, _Round

METADATA_ERROR = 1


def round_that_asked() -> Any:
    connection: Any = SimpleNamespace(where="pulsar://broker:6650")
    return _Round(connection, {4: Looking(Place("persistent://a/b/c", 7, 0))}, {1: (4, False)})


def test_a_broker_that_cannot_read_the_last_entry_is_as_good_as_silent():
    round_that_asked()._hear(
        Error(1, METADATA_ERROR, "Failed to get batch size for entry java.lang.IllegalStateException")
    )


def test_another_answer_is_an_error_of_the_look():
    with pytest.raises(StreamsError, match="look at persistent://a/b/c"):
        round_that_asked()._hear(Error(1, METADATA_ERROR, "Metadata store is not there"))
