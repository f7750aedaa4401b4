"""Packing: things in order, as many together as fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def packed(items: Iterable[T], size: Callable[[T], int], most: int, count: int | None = None) -> Iterator[list[T]]:
    """Lists of things whose sizes add up to at most `most`, in order; one that is larger has a list of its own.

    Args:
        items: the things.
        size: of one of them.
        most: the limit of a list's sizes.
        count: how many may be in a list; None: any number.
    """
    pack: list[T] = []
    total = 0
    for item in items:
        if pack and (total + size(item) > most or len(pack) == count):
            yield pack
            pack, total = [], 0
        pack.append(item)
        total += size(item)
    if pack:
        yield pack
