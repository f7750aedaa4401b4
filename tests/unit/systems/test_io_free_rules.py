"""Both drivers answer a rule alike, and a failed question fails inside the rule."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from airflow_provider_streams.systems.io_free_rules import Rule, arun, run


def divided(number: int) -> Rule[int, list[Any]]:
    """100 by all numbers down from this one; what cannot be answered is noted."""
    found: list[Any] = []
    for divisor in range(number, -1, -1):
        try:
            found.append((yield divisor))
        except ZeroDivisionError as error:
            found.append(type(error))
    return found


def answer(divisor: int) -> int:
    if divisor == 7:
        raise LookupError("no one knows")
    return 100 // divisor


async def later(divisor: int) -> int:
    await asyncio.sleep(0)
    return answer(divisor)


def test_both_drivers_give_the_rule_its_answers_and_its_failures():
    expected = [50, 100, ZeroDivisionError]
    assert run(divided(2), answer) == asyncio.run(arun(divided(2), later)) == expected


def test_what_a_rule_does_not_expect_ends_it():
    with pytest.raises(LookupError, match="no one knows"):
        run(divided(8), answer)
    with pytest.raises(LookupError, match="no one knows"):
        asyncio.run(arun(divided(8), later))


def nothing() -> Rule[int, str]:
    return "at once"
    yield 1


def test_a_rule_may_ask_nothing():
    assert run(nothing(), answer) == "at once"
