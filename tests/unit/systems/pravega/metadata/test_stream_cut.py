from __future__ import annotations

import base64
import contextlib
import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.errors import InvalidName, InvalidRequest, ProtocolError
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.systems.pravega.client.varint import (
    compact_int,
    compact_long,
    compact_signed_long,
    record,
    text,
)
from airflow_provider_streams.systems.pravega.metadata.segment_names import segment_id
from airflow_provider_streams.systems.pravega.metadata.stream_cut import StreamCut, follows, offsets_from_json

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
def test_no_text_raises_anything_but_an_invalid_request(plain):
    for candidate in (plain, text_of("0:a/b:" + plain), text_of(plain)):
        with contextlib.suppress(InvalidRequest):
            StreamCut.from_text(candidate)


@pytest.mark.parametrize(
    "plain",
    [
        "",
        "0:a/b",
        "1:a/b:0:0:0",
        "0:a b/c:0:0:0",
        "0:a/b:0:0:1:2",
        "0:a/b:0,1:0:0",
        "0:a/b:0,1:0,0:5,6,",
        "0:a/b:x:0:0",
        "0:a/b: 0:0:5",
        "0:a/b:0:0:5 ",
        "0:a/b:0:0:\n5",
        "0:a/b:+0:0:5",
        "0:a/b:0:0:1_000",
        "0:a/b:0:0:007",
        "0:a/b:0:0:-2",
        "0:a/b:-1:0:5",
        "0:a/b:0,0:0,0:5,6",
        "0:a/b:4294967297:0:5",
        "0:a/b:2147483648:0:5",
        f"0:a/b:0:0:{1 << 63}",
        f"0:a/b:0:0:{'9' * 5000}",
        "0:a/b:0:2147483648:5",
        "0:a/b:0:99999999999999:5",
    ],
)
def test_malformed_content_is_refused(plain):
    with pytest.raises(InvalidRequest):
        StreamCut.from_text(text_of(plain))


def test_the_greatest_cut_that_can_be_is_taken():
    plain = f"0:a/b:{(1 << 31) - 1}:{(1 << 31) - 1}:{(1 << 63) - 1}"
    cut = StreamCut.from_text(text_of(plain))
    assert cut.offsets == {((1 << 31) - 1) * ((1 << 32) + 1): (1 << 63) - 1}
    assert StreamCut.from_text(cut.to_text()) == cut


@pytest.mark.parametrize("plain", [b"0" * (64 << 20), b"0:a/b:" + b"1," * (1 << 20), b"0:a/b:0:0:0" + bytes(1 << 20)])
def test_a_bomb_is_refused_before_it_fills_the_memory(plain):
    with pytest.raises(InvalidRequest, match="too long"):
        StreamCut.from_text(base64.b64encode(gzip.compress(plain)).decode())
    with pytest.raises(InvalidRequest, match="too long"):
        StreamCut.from_text("A" * (4 << 20))


def test_base64_and_gzip_are_taken_as_a_whole():
    whole = gzip.compress(b"0:a/b:0:0:5")
    for data in (whole[:-1], whole + b"\0", whole + whole, b"\0" + whole, gzip.compress("0:a/b:٣:0:0".encode())):
        with pytest.raises(InvalidRequest, match="is not a stream cut"):
            StreamCut.from_text(base64.b64encode(data).decode())
    text = base64.b64encode(whole).decode()
    assert StreamCut.from_text(f" {text}\n").offsets == {0: 5}, "as it is copied"
    for other in (text[:9] + " " + text[9:], text.replace("A", "-"), text + "=", text + text):
        with pytest.raises(InvalidRequest):
            StreamCut.from_text(other)


@pytest.mark.parametrize(
    "offsets",
    [
        {"0.#epoch.0": "5", "a/b/0.#epoch.0": "5"},
        {"a/b/0": "5", "a/b/0.#epoch.0": "6"},
        {"0.#epoch.0": " 5"},
        {"0.#epoch.0": "5.0"},
        {"0.#epoch.0": 5.0},
        {"0.#epoch.0": True},
        {"0.#epoch.0": None},
        {"0.#epoch.0": ["5"]},
        {"0.#epoch.0": str(1 << 63)},
        {"0.#epoch.0": -2},
        {"00.#epoch.0": "5"},
        {"0.#epoch.00": "5"},
        {"٣.#epoch.0": "5"},
        {"0.#epoch.0 ": "5"},
        {"2147483648.#epoch.0": "5"},
        {"a/c/0.#epoch.0": "5"},
        {"": "5"},
    ],
)
def test_a_mapping_that_is_no_cut_is_refused(offsets):
    with pytest.raises(InvalidRequest):
        StreamCut.from_mapping("a/b", offsets)


@pytest.mark.parametrize(
    "text",
    [
        '{"0.#epoch.0": "5", "0.#epoch.0": "6"}',
        '{"0.#epoch.0": "5", "a/b/0.#epoch.0": "6"}',
        '{"0.#epoch.0": 9223372036854775808}',
        '{"0.#epoch.0": NaN}',
        '{"0.#epoch.0": 1e3}',
        '{"0.#epoch.0": " 5"}',
        '[["0.#epoch.0", "5"]]',
        '{"0.#epoch.0": "5"',
        "{" * 100_000,
    ],
)
def test_json_that_is_no_cut_is_refused(text):
    with pytest.raises(InvalidRequest):
        StreamCut.from_mapping("a/b", offsets_from_json("a/b", text))


def test_a_mapping_names_segments_in_full_or_in_short():
    wanted = StreamCut("a/b", {0: 5, (1 << 32) + 1: (1 << 63) - 1})
    assert StreamCut.from_mapping("a/b", {"0.#epoch.0": "5", "a/b/1.#epoch.1": (1 << 63) - 1}) == wanted


@pytest.mark.parametrize("offsets", [{0: 1 << 63}, {0: -2}, {-1: 0}, {1 << 31: 0}, {1 << 63: 0}])
def test_what_no_segment_can_have_is_refused_wherever_it_comes_from(offsets):
    with pytest.raises(InvalidRequest, match="no segment can have"):
        StreamCut("a/b", offsets)


def test_bytes_that_name_a_segment_twice_or_one_that_cannot_be_are_refused():
    pairs = [compact_long(key) + compact_signed_long(5) for key in (0, 0, 1 << 31)]
    for count, content in ((2, pairs[:2]), (1, pairs[2:])):
        data = record(bytes.fromhex("00010100"), text("a/b") + compact_int(count) + b"".join(content))
        with pytest.raises(ProtocolError):
            StreamCut.from_bytes(data)


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
