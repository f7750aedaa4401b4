from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.model.bin_packing import packed


@given(st.lists(st.integers(0, 20)), st.integers(1, 30), st.none() | st.integers(1, 5))
def test_things_stay_in_order_and_as_many_as_fit_are_together(sizes, most, count):
    packs = list(packed(sizes, int, most, count))
    assert [size for pack in packs for size in pack] == sizes
    assert all(pack and (sum(pack) <= most or len(pack) == 1) for pack in packs)
    assert all(count is None or len(pack) <= count for pack in packs)
    assert all(sum(one) + after[0] > most or len(one) == count for one, after in pairwise(packs))
