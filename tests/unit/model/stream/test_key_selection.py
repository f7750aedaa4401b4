import json
from dataclasses import replace

import pytest

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.plan.plan import Plan
from airflow_provider_streams.model.stream.key_selection import Selection, joined_slots, key_texts
from airflow_provider_streams.testing.plans import plan_of

CHOSEN = [
    Selection(keys=(b"a", b"\xff,")),
    Selection(slots=((0, 10), (20, 65535))),
    Selection(routing_keys=("a", "b,c")),
]


@pytest.mark.parametrize("chosen", CHOSEN)
def test_a_selection_is_in_the_plan_and_in_its_fingerprint(chosen):
    plain = plan_of([])
    plan = replace(plain, selection=chosen)
    assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan
    assert plan.fingerprint != plain.fingerprint
    assert plain.to_json()["selection"] is None
    others = {replace(plan, selection=other).fingerprint for other in CHOSEN}
    assert len(others) == len({other.text for other in CHOSEN}) == len({str(other) for other in CHOSEN}) == 3


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"keys": (b"a",), "slots": ((0, 1),)},
        {"slots": ((1, 0),)},
        {"slots": ((0, 65536),)},
        {"slots": ((-1, 3),)},
    ],
)
def test_what_chooses_nothing_is_refused(given):
    with pytest.raises(InvalidRequest):
        Selection(**given)


def test_ranges_that_touch_are_one():
    assert joined_slots([(5, 9), (0, 3), (4, 4), (8, 12), (20, 21)]) == ((0, 12), (20, 21))
    assert joined_slots([(5, 3)]) == ((5, 3),), "what is no range stays one for its refusal"
    assert key_texts("PulsarSource", "keys", "b") == ("b",)
    assert key_texts("PulsarSource", "keys", ["b", "a", "b"]) == ("a", "b")
    with pytest.raises(InvalidRequest, match="PulsarSource: keys: keys are texts"):
        key_texts("PulsarSource", "keys", [b"a"])
