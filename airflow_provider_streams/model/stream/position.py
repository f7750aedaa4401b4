"""A position: a place in a shard, and its total order."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from airflow_provider_streams.errors import PlanMismatch

_TEXT = re.compile(r"-?[0-9]{1,20}(?::-?[0-9]{1,20})*")


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place *before* an event of one shard, as integers that compare in reading order.

    Pulsar: (ledger, entry, batch index); batch index -1 is the start of the entry. Pravega: (byte offset,).
    Only the system knows the meaning of the parts, and only positions of one shard may be compared.
    """

    parts: tuple[int, ...]

    def __str__(self) -> str:
        return ":".join(map(str, self.parts))

    @classmethod
    def of(cls, *parts: int) -> Self:
        """From its parts."""
        return cls(tuple(parts))

    @classmethod
    def parse(cls, text: str) -> Self:
        """From its text, `31044:118:-1`.

        Raises:
            PlanMismatch: the text is not integers between colons.
        """
        if not isinstance(text, str) or not _TEXT.fullmatch(text):
            raise PlanMismatch(f"{str(text)[:80]!r} is not a position")
        return cls(tuple(int(part) for part in text.split(":")))
