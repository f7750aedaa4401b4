"""Places as text compare as the numbers do."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_streams.formats.change_data.positions import stream_positions
from tests.seeds import examples

NUMBERS = st.integers(-1, 2**63 - 1)


@settings(max_examples=examples(50))
@given(st.lists(st.tuples(NUMBERS, NUMBERS, st.one_of(st.none(), NUMBERS)), min_size=1, max_size=30))
def test_texts_sort_as_their_numbers_do(places: list[tuple[int, int, int | None]]) -> None:
    texts = stream_positions([pa.array(list(column), pa.int64()) for column in zip(*places, strict=True)]).to_pylist()
    numbers = [tuple(max(part or 0, 0) for part in place) for place in places]
    order = sorted(range(len(places)), key=lambda row: texts[row])
    assert [numbers[row] for row in order] == sorted(numbers)
    assert len({len(text) for text in texts}) == 1
    assert [tuple(map(int, text.split("."))) for text in texts] == numbers
