"""Limits of one entry, checked before a few bytes from outside can cost much memory or time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from airflow_provider_streams.systems.pulsar.client.protobuf import Malformed

FREE_BYTES: Final = 16 * 1024 * 1024
"""Any entry may decompress to so many bytes."""

GREATEST: Final = {"max_entry_bytes": 512 * 1024 * 1024, "max_entry_rows": 100_000_000, "max_entry_ratio": 1_000_000}
"""The greatest limits. Arrow's offsets are int32, and an invalid byte of UTF-8 becomes three bytes: hence the first."""


class TooLarge(Malformed):
    """An entry beyond a limit; `option` is the setting that raises the limit."""

    def __init__(self, what: str, option: str, limit: int) -> None:
        self.what, self.option, self.limit = what, option, limit
        super().__init__(f"{what}; {option} is {limit}")


@dataclass(frozen=True)
class Limits:
    """Limits of one entry, named like the options of a connection."""

    max_entry_bytes: int = 256 * 1024 * 1024
    """Decompressed, with all its chunks."""
    max_entry_rows: int = 1_000_000
    """Messages in it, and properties of them all."""
    max_entry_ratio: int = 1_000
    """How many times its stored size it may decompress to, beyond `FREE_BYTES`."""

    def check(self, size: int, rows: int) -> None:
        """Raises `TooLarge` for more bytes or rows than allowed."""
        if size > self.max_entry_bytes or rows > self.max_entry_rows:
            self.check_bytes(size)
            self.check_rows(rows)

    def check_bytes(self, size: int) -> None:
        """Raises `TooLarge` for more than `max_entry_bytes`."""
        if size > self.max_entry_bytes:
            raise TooLarge(f"it holds {size} bytes", "max_entry_bytes", self.max_entry_bytes)

    def check_ratio(self, size: int, stored: int) -> None:
        """Raises `TooLarge` for `stored` bytes that decompress to too many."""
        if size > max(FREE_BYTES, self.max_entry_ratio * stored):
            raise TooLarge(
                f"its {stored} bytes decompress to {size}, {size // max(stored, 1)} times as many",
                "max_entry_ratio",
                self.max_entry_ratio,
            )

    def check_rows(self, count: int, kind: str = "messages") -> None:
        """Raises `TooLarge` for more than `max_entry_rows`."""
        if count > self.max_entry_rows:
            raise TooLarge(f"it holds {count} {kind}", "max_entry_rows", self.max_entry_rows)
