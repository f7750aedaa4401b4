from __future__ import annotations

import base64
import contextlib
import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.errors import InvalidName, InvalidRequest, ProtocolError
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.position import Position
from airflow_provider_streams.systems.pravega.names import segment_id
from airflow_provider_streams.systems.pravega.stream_cut import StreamCut, follows

IDS = st.builds(segment_id, st.integers(0, 5000), st.integers(0, 5000))
CUTS = st.builds(
    StreamCut, st.just("scope/my-stream.v2"), st.dictionaries(IDS, st.integers(0, 1 << 50), min_size=1, max_size=12)
)


def text_of(plain: str) -> str:
    return base64.b64encode(gzip.compress(plain.encode())).decode()


@given(CUTS)
def test_a_cut_survives_each_of_its_notations(cut):
    assert StreamCut.from_text(cut.to_text()) == cut
    assert StreamCut.from_bytes(cut.to_bytes()) == cut
    assert StreamCut.from_model(cut.stream, cut.to_model()) == cut


@given(CUTS)
def test_the_order_of_segments_decides_nothing(cut):
    other = StreamCut(cut.stream, dict(reversed(cut.offsets.items())))
    assert other == cut
    assert hash(other) == hash(cut)
    assert other.to_text() == cut.to_text()


@given(st.binary(max_size=60))
def test_no_bytes_raise_anything_but_a_protocol_error(data):
    for candidate in (data, bytes.fromhex("00010100") + data):
        with contextlib.suppress(ProtocolError):
            StreamCut.from_bytes(candidate)


@given(st.text(max_size=60))
def test_no_text_raises_anything_but_an_invalid_request(text):
    for candidate in (text, text_of("0:a/b:" + text), text_of(text)):
        with contextlib.suppress(InvalidRequest):
            StreamCut.from_text(candidate)


@pytest.mark.parametrize(
    "plain", ["1:a/b:0:0:0", "0:a/b:0,1:0:0", "0:a/b:x:0:0", "0:a/b", "0:a b/c:0:0:0", "", "0:a/b:0:0:1:2"]
)
def test_malformed_content_is_refused(plain):
    if plain == "0:a/b":
        assert not StreamCut.from_text(text_of(plain)).offsets
        return
    with pytest.raises(InvalidRequest):
        StreamCut.from_text(text_of(plain))


def test_a_bomb_is_refused_before_it_fills_the_memory():
    with pytest.raises(InvalidRequest, match="cut short"):
        StreamCut.from_text(base64.b64encode(gzip.compress(b"0" * (64 << 20))).decode())


def test_cuts_of_other_streams_and_other_systems_are_refused():
    with pytest.raises(InvalidRequest, match="another stream"):
        StreamCut.from_model("a/b", Cut({"a/c/0.#epoch.0": Position.of(1)}))
    with pytest.raises(InvalidRequest, match="one byte offset"):
        StreamCut.from_model("a/b", Cut({"a/b/0.#epoch.0": Position.of(1, 2)}))
    with pytest.raises(InvalidName):
        StreamCut.from_model("a/b", Cut({"persistent://a/b/c": Position.of(1)}))


def tail(**offsets):
    """A tail, by `s<number>_<epoch>`."""
    keys = {name: tuple(map(int, name[1:].split("_"))) for name in offsets}
    ids = {segment_id(*keys[name]): offset for name, offset in offsets.items()}
    return StreamCut("a/b", ids).to_model()


@pytest.mark.parametrize(
    ("earlier", "later", "expected"),
    [
        (tail(s0_0=5), tail(s0_0=5), True),
        (tail(s0_0=5, s1_0=5), tail(s0_0=6, s1_0=4), False),  # they cross
        (tail(s0_0=5), tail(s1_1=0, s2_1=0), True),  # split in between
        (tail(s1_1=0, s2_1=0), tail(s0_0=900), False),
        (tail(s0_0=5, s1_0=5), tail(s0_0=5, s2_1=0), True),
        (tail(s0_0=5, s1_0=5), tail(s0_0=4, s2_1=0), False),  # later by epoch, earlier in a segment
        (tail(s1_0=5, s2_1=0), tail(s1_0=9, s0_0=9), False),
        (tail(s0_2=5), tail(s0_4=0), True),  # a transaction that was rolled over
    ],
)
def test_tails_are_ordered_by_offsets_and_epochs(earlier, later, expected):
    assert follows(earlier, later) is expected
