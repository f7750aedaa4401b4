"""Scaling by hand: what is chosen is pure; the rule looks first, waits, and can be repeated."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.errors import InvalidRequest, SystemUnavailable
from airflow_provider_streams.systems.connection.backoff import Pause
from airflow_provider_streams.systems.pravega.client.controller.call import KeyedSegment
from airflow_provider_streams.systems.pravega.operations.scaling import Order, merge, scale, split, to_count

STREAM = "scope/stream"
ONE = (KeyedSegment(0, 0.0, 1.0),)
THREE = (KeyedSegment(1, 0.0, 0.25), KeyedSegment(2, 0.25, 0.5), KeyedSegment(3, 0.5, 1.0))


def owned(ranges) -> None:
    """They own the whole key space, once."""
    ordered = sorted(ranges)
    assert (ordered[0][0], ordered[-1][1]) == (0.0, 1.0)
    assert all(left[1] == right[0] for left, right in pairwise(ordered))


@given(st.integers(1, 1000))
def test_equal_shares_own_the_key_space_once(count):
    order = to_count(count)(THREE)
    owned(order.ranges)
    assert (order.sealed, len(order.ranges)) == ((1, 2, 3), count)


def test_shares_that_are_there_already_are_left_alone():
    assert to_count(1)(ONE) == Order()
    halves = (KeyedSegment(8, 0.0, 0.5), KeyedSegment(9, 0.5, 1.0))
    assert to_count(2)(halves) == Order()


@given(st.integers(2, 100), st.sampled_from(THREE))
def test_a_split_keeps_the_keys_of_its_segment(parts, chosen):
    order = split(chosen.segment_id, parts)(THREE)
    assert (order.sealed, len(order.ranges)) == ((chosen.segment_id,), parts)
    owned([*order.ranges, *((one.low, one.high) for one in THREE if one is not chosen)])


def test_neighbours_are_merged_in_any_order():
    assert merge([2, 1])(THREE) == Order((1, 2), ((0.0, 0.5),))
    assert merge([3, 1, 2])(THREE).ranges == ((0.0, 1.0),)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (lambda: to_count(0), "1 to 10,000"),
        (lambda: to_count(10**9), "1 to 10,000"),
        (lambda: split(1, 1), "2 to 10,000"),
        (lambda: split(1, 10**9), "2 to 10,000"),
        (lambda: merge([1]), "at least two"),
        (lambda: merge([1, 1]), "at least two"),
        (lambda: merge([1, 3])(THREE), "neighbours"),
        (lambda: split(7 | 2 << 32)(THREE), r"not open: 7\.#epoch\.2; open are 1\.#epoch\.0, "),
    ],
)
def test_what_cannot_be_is_refused(choice, message):
    with pytest.raises(InvalidRequest, match=message):
        choice()


class Controller:
    """Answers the rule's questions, and keeps what was ordered."""

    def __init__(self, current=ONE, *, epoch=4, running=2) -> None:
        self.current, self.epoch, self.running = current, epoch, running
        self.orders: list[object] = []
        self.pauses = 0

    def run(self, steps):
        answer = None
        while True:
            try:
                question = steps.send(answer)
            except StopIteration as done:
                return done.value
            answer = self.answer(question)

    def answer(self, question):
        if isinstance(question, Pause):
            self.pauses += 1
            return None
        if question.method == "getCurrentSegments":
            return self.current
        if question.method == "scale":
            self.orders.append(question.message)
            return self.epoch
        assert question.method == "checkScale"
        assert question.message.epoch == self.epoch
        self.running -= 1
        if self.running >= 0:
            return False
        self.current = THREE
        return True


def test_the_rule_waits_for_the_end():
    controller = Controller()
    assert controller.run(scale(STREAM, to_count(2))) == THREE
    assert (len(controller.orders), controller.pauses) == (1, 2)


def test_nothing_is_ordered_when_it_is_so_already():
    controller = Controller()
    assert controller.run(scale(STREAM, to_count(1))) == ONE
    assert controller.orders == []


def test_a_sealed_stream_and_a_lost_race_have_errors_of_their_own():
    with pytest.raises(InvalidRequest, match="is sealed"):
        Controller(current=()).run(scale(STREAM, to_count(2)))
    with pytest.raises(SystemUnavailable, match="changed while") as raced:
        Controller(epoch=None).run(scale(STREAM, to_count(2)))
    assert raced.value.retryable


def test_a_scaling_that_does_not_end_is_given_up():
    with pytest.raises(SystemUnavailable, match="goes on"):
        Controller(running=10**6).run(scale(STREAM, to_count(2)))
