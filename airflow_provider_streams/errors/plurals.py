"""How messages state a number of things."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """`1 window`, `2 windows`, `1,200 entries`: a number and its regular English noun, given in the singular."""
    return f"{number:,} {noun if number == 1 else _plural(noun)}"


def _plural(noun: str) -> str:
    return f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2] not in "aeiou" else f"{noun}s"
