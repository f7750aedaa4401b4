"""How much one entry may become: what a few bytes from the outside can cost is bounded before it is paid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from airflow_provider_streams.systems.pulsar.protobuf import Malformed

FREE_BYTES: Final = 16 * 1024 * 1024
"""What an entry may decompress to, however small it is."""

GREATEST: Final = {"max_entry_bytes": 512 * 1024 * 1024, "max_entry_rows": 100_000_000, "max_entry_ratio": 1_000_000}
"""What may be set. Arrow's offsets are int32, and a byte of a text that is no UTF-8 becomes three: hence the first."""


class TooLarge(Malformed):
    """An entry beyond a limit; `option` is the setting that raises it."""

    def __init__(self, what: str, option: str, limit: int) -> None:
        self.what, self.option, self.limit = what, option, limit
        super().__init__(f"{what}; {option} is {limit}")


@dataclass(frozen=True)
class Limits:
    """Of one entry. Fields are named like the options of a connection that set them."""

    max_entry_bytes: int = 256 * 1024 * 1024
    """Decompressed, and put together of its chunks."""
    max_entry_rows: int = 1_000_000
    """Messages in it, and properties of all of them."""
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
