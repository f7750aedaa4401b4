"""Settings as users say them: what is not said stays; an update that would scale a stream is refused."""

from __future__ import annotations

from datetime import timedelta

import pytest

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.systems.pravega.client.controller.call import KeyedSegment
from airflow_provider_streams.systems.pravega.client.stream_configuration import (
    NO_LIMIT,
    Retention,
    RetentionKind,
    Scaling,
    ScalingKind,
    Settings,
)
from airflow_provider_streams.systems.pravega.operations.administration import change_settings
from airflow_provider_streams.systems.pravega.operations.stream_settings import StreamSettings, check_if_exists

FULL = Settings(
    Scaling(ScalingKind.EVENTS_RATE, 100, 2, 3),
    Retention(RetentionKind.SIZE, 1000, 2000),
    ("a",),
    timestamp_aggregation_ms=7,
    rollover_bytes=9,
)


def test_what_is_not_said_stays():
    assert StreamSettings()(FULL) == FULL
    changed = StreamSettings(tags=("c", "b", "c"))(FULL)
    assert changed == Settings(FULL.scaling, FULL.retention, ("b", "c"), 7, 9)
    assert StreamSettings(tags=())(FULL).tags == ()


@pytest.mark.parametrize(
    ("said", "scaling"),
    [
        ({"segments": 5}, Scaling(ScalingKind.EVENTS_RATE, 100, 2, 5)),
        ({"events_per_second": 50}, Scaling(ScalingKind.EVENTS_RATE, 50, 2, 3)),
        ({"kilobytes_per_second": 8, "scale_factor": 4, "segments": 2}, Scaling(ScalingKind.BYTES_RATE, 8, 4, 2)),
    ],
)
def test_scaling_is_by_number_or_rate(said, scaling):
    assert StreamSettings(**said)(FULL).scaling == scaling


def test_retention_is_by_time_or_size():
    by_time = StreamSettings(retention=timedelta(seconds=2))(FULL).retention
    assert by_time == Retention(RetentionKind.TIME, 2000, NO_LIMIT), "a hold may keep more"
    assert StreamSettings(retention_bytes=5)(Settings()).retention == Retention(RetentionKind.SIZE, 5, NO_LIMIT)


def test_how_long_watermarks_wait_can_be_said():
    assert StreamSettings(note_timeout=timedelta(minutes=2))(FULL).timestamp_aggregation_ms == 120_000


def test_the_most_that_holds_may_keep_stays_where_it_can():
    assert StreamSettings(retention_bytes=5)(FULL).retention == Retention(RetentionKind.SIZE, 5, 2000)
    assert StreamSettings(retention_bytes=5000)(FULL).retention == Retention(RetentionKind.SIZE, 5000, NO_LIMIT)


@pytest.mark.parametrize(
    "said",
    [
        {"events_per_second": 1, "kilobytes_per_second": 1},
        {"retention": timedelta(days=1), "retention_bytes": 1},
        {"segments": 0},
        {"retention_bytes": 0},
        {"retention": timedelta(0)},
        {"scale_factor": 1},
        {"segments": 1 << 31},
        {"events_per_second": 1 << 31},
        {"retention_bytes": 1 << 63},
        {"retention_bytes": float("nan")},
        {"note_timeout": timedelta(0)},
    ],
)
def test_what_cannot_be_is_refused(said):
    with pytest.raises(InvalidRequest):
        StreamSettings(**said)


def test_only_known_words_say_what_becomes_of_an_existing_stream():
    check_if_exists("keep")
    with pytest.raises(InvalidRequest, match="keep, update, fail"):
        check_if_exists("overwrite")


class Stream:
    """A stream with settings and open segments; keeps what it was updated to."""

    def __init__(self, settings: Settings, segments: int) -> None:
        self.settings, self.segments = settings, segments
        self.updates = 0

    def run(self, steps):
        answer = None
        while True:
            try:
                question = steps.send(answer)
            except StopIteration as done:
                return done.value
            answer = self.answer(question.method)

    def answer(self, method):
        if method == "updateStream":
            self.updates += 1
        return {
            "getStreamConfiguration": self.settings,
            "getCurrentSegments": tuple(KeyedSegment(number, 0, 0) for number in range(self.segments)),
            "updateStream": True,
        }[method]


FIXED = Settings(Scaling(min_segments=2))


@pytest.mark.parametrize(
    ("settings", "segments", "change", "rescale"),
    [
        (FIXED, 2, {"tags": ("a",)}, False),
        (FIXED, 3, {"tags": ("a",), "segments": 3}, False),
        (FIXED, 3, {"tags": ("a",)}, True),
        (FIXED, 3, {"events_per_second": 5}, False),
        (FULL, 8, {"tags": ("b",)}, False),
        (FIXED, 0, {"tags": ("a",)}, False),  # a sealed stream: the server refuses
    ],
)
def test_an_update_that_scales_nothing_unasked_is_made(settings, segments, change, rescale):
    stream = Stream(settings, segments)
    assert stream.run(change_settings("s/t", StreamSettings(**change), rescale=rescale)).updated
    assert stream.updates == 1


@pytest.mark.parametrize(
    ("segments", "change"), [(3, {"tags": ("a",)}), (1, {"retention_bytes": 5}), (2, {"segments": 3})]
)
def test_an_update_that_would_scale_is_refused_before_it_is_made(segments, change):
    stream = Stream(FIXED, segments)
    with pytest.raises(InvalidRequest, match=rf"has {segments} open segments.* rescale=True"):
        stream.run(change_settings("s/t", StreamSettings(**change)))
    assert stream.updates == 0


def test_nothing_is_sent_when_nothing_changes():
    stream = Stream(FIXED, 5)
    assert not stream.run(change_settings("s/t", StreamSettings(segments=2))).updated
    assert stream.updates == 0
