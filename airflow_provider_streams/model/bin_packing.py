"""Packing: items in order, as many together as fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def packed(items: Iterable[T], size: Callable[[T], int], most: int, count: int | None = None) -> Iterator[list[T]]:
    """Lists of items whose sizes add up to at most `most`, in order. A larger item has a list of its own.

    A list has at most `count` items; None: any number.
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
