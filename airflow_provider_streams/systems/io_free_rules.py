"""Drivers of rules: generators that yield what to ask, receive the answers, and return a value.

A rule does no I/O, so blocking and asynchronous callers share it. Its driver decides what a question means. A question
that fails raises inside the rule, at its `yield`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable
from typing import Any, TypeVar

Q = TypeVar("Q")
T = TypeVar("T")

Rule = Generator[Q, Any, T]


def run(rule: Rule[Q, T], answer: Callable[[Q], Any]) -> T:
    """The value of a rule, whose questions are answered one after the other."""
    try:
        question = next(rule)
        while True:
            try:
                found = answer(question)
            except Exception as error:  # noqa: BLE001 - the rule decides what a failure means
                question = rule.throw(error)
            else:
                question = rule.send(found)
    except StopIteration as end:
        value: T = end.value
        return value


async def arun(rule: Rule[Q, T], answer: Callable[[Q], Awaitable[Any]]) -> T:
    """As `run`, for an event loop."""
    try:
        question = next(rule)
        while True:
            try:
                found = await answer(question)
            except Exception as error:  # noqa: BLE001 - the rule decides what a failure means
                question = rule.throw(error)
            else:
                question = rule.send(found)
    except StopIteration as end:
        value: T = end.value
        return value


async def together(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run them side by side; their results in order, or the first failure itself, once the others have ended."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
