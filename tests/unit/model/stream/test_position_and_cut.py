import json
from itertools import pairwise

import pytest
from hypothesis import given

from airflow_provider_streams.errors import PlanMismatch
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.position import Position
from tests.unit.model.values import cuts, positions


@given(positions)
def test_a_position_survives_its_text(position):
    assert Position.parse(str(position)) == position
    assert Position.of(*position.parts) == position


def test_positions_order_by_ledger_entry_and_batch_index():
    ordered = [(43, 3, -1), (43, 3, 0), (43, 3, 4), (43, 4, -1), (43, 20, -1), (44, 0, -1)]
    made = [Position.of(*parts) for parts in ordered]
    assert all(left < right for left, right in pairwise(made))


@pytest.mark.parametrize("text", ["", "a", "1:", ":1", "1:x", "1;2", "1.5:2"])
def test_other_texts_are_no_positions(text):
    with pytest.raises(PlanMismatch, match="not a position"):
        Position.parse(text)


@given(cuts)
def test_a_cut_survives_json_and_is_equal_however_it_was_built(cut):
    assert Cut.from_json(json.loads(json.dumps(cut.to_json()))) == cut
    turned = Cut(dict(reversed(cut.positions.items())))
    assert turned == cut
    assert hash(turned) == hash(cut)
    assert list(turned) == sorted(cut)


def test_a_cut_is_a_mapping_of_shards():
    cut = Cut({"b": Position.of(2), "a": Position.of(1)})
    assert (len(cut), cut["b"], cut.get("c")) == (2, Position.of(2), None)
    assert str(cut) == "a@1, b@2"
