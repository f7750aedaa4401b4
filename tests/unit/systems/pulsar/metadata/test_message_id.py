import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.systems.pulsar.client.wire import commands_pb2 as pb
from airflow_provider_streams.systems.pulsar.metadata.message_id import parse_position

PLAIN = "persistent://a/b/c"
THIRD = f"{PLAIN}-partition-3"


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("43:3", (43, 3, -1)),
        ("43:3:-1", (43, 3, -1)),
        ("43:3:-1:2", (43, 3, 2)),
        ("-1:-1", (-1, -1, -1)),
        ("after 43:3", (43, 4, -1)),
        ("AFTER  43:3:-1:2", (43, 3, 3)),
        ('{"ledgerId": 43, "entryId": 3, "partitionIndex": -1, "batchIndex": -1}', (43, 3, -1)),
        (base64.b64encode(bytes.fromhex("082b100020013005")).decode(), (43, 0, 1)),
        ("after " + base64.b64encode(bytes.fromhex("082b100020013005")).decode(), (43, 0, 2)),
        # the last of five: the place after it is the next entry
        ("after " + base64.b64encode(bytes.fromhex("082b100020043005")).decode(), (43, 1, -1)),
        # a chunked message: the id of its last chunk, the first chunk in field 7
        (base64.b64encode(bytes.fromhex("086910033a0408691001")).decode(), (105, 3, -1)),
    ],
)
def test_every_notation_names_its_position(text, position):
    assert parse_position(text, PLAIN) == Position.of(*position)


@pytest.mark.parametrize(
    "text", ["", "43", "43:", "x:y", "1:2:3:4:5", "{}", '{"ledgerId": 1}', "====", "abcd", "CCs", "[1]"]
)
def test_anything_else_is_refused_with_the_notations(text):
    with pytest.raises(InvalidRequest, match="ledger:entry"):
        parse_position(text, PLAIN)


def test_an_id_of_another_partition_is_refused():
    assert parse_position("43:3:3:-1", THIRD) == Position.of(43, 3, -1)
    for shard, text in ((THIRD, "43:3:2:-1"), (PLAIN, "43:3:2:-1")):
        with pytest.raises(InvalidRequest, match="partition 2"):
            parse_position(text, shard)


@pytest.mark.parametrize("shard", [PLAIN, THIRD])
def test_a_partition_and_a_place_in_a_batch_are_not_confused(shard):
    """Java's clients write `ledger:entry:partition`, plans `ledger:entry:batch index`."""
    with pytest.raises(InvalidRequest, match=r"write 43:3:3:-1 for the first, 43:3:-1:3 for the second"):
        parse_position("43:3:3", shard)
    assert parse_position("43:3:-1:3", shard) == Position.of(43, 3, 3)


@given(st.tuples(st.integers(0, 2**62), st.integers(-1, 2**62), st.integers(-1, 10**6)))
def test_a_plans_position_given_back_is_itself_or_refused(parts):
    position = Position.of(*parts)
    if parts[2] < 0:
        assert parse_position(str(position), THIRD) == position
    else:
        with pytest.raises(InvalidRequest, match="may be an entry of partition"):
            parse_position(str(position), THIRD)


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**62), st.integers(-1, 1000), st.integers(1, 1000))
def test_serialized_ids_and_json_agree(ledger, entry, index, size):
    data = pb.MessageIdData(
        ledgerId=ledger, entryId=entry, partition=3, batch_index=index, batch_size=size if index >= 0 else None
    ).SerializeToString()
    written = json.dumps({"ledgerId": ledger, "entryId": entry, "partitionIndex": 3, "batchIndex": index})
    expected = Position.of(ledger, entry, index)
    assert parse_position(base64.b64encode(data).decode(), THIRD) == expected
    assert parse_position(base64.urlsafe_b64encode(data).decode().rstrip("="), THIRD) == expected
    assert parse_position(written, THIRD) == expected
    assert parse_position(f"after {written}", THIRD) > expected


@given(st.text(max_size=30))
def test_no_text_does_anything_but_parse_or_be_refused(text):
    try:
        position = parse_position(text, PLAIN)
    except InvalidRequest:
        return
    assert len(position.parts) == 3
