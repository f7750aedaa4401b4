"""What the demos write: orders that follow from their numbers, so that everybody can say what a table must hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

COUNTRIES = ("AT", "CH", "DE", "FR", "IT")
SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "number", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "country", "type": "string"},
        {"name": "cents", "type": "long"},
        {"name": "note", "type": "string"},
    ],
}
"""As Avro has it."""
COLUMNS = "number long, customer string, country string, cents long, note string"
"""As Spark has it."""


def order(number: int) -> dict[str, Any]:
    """One order; of about 60 to 250 bytes."""
    return {
        "number": number,
        "customer": f"customer-{number % 997}",
        "country": COUNTRIES[number % 997 % len(COUNTRIES)],
        "cents": number * 7919 % 100_000,
        "note": "x" * (number * 31 % 180),
    }


def orders(count: int) -> pa.Table:
    """The first orders: what was written."""
    import pyarrow as pa

    return pa.Table.from_pylist([order(number) for number in range(count)])


def sales(count: int) -> list[tuple[str, int, int]]:
    """The first orders by country: how many, and how much in all."""
    found = dict.fromkeys(COUNTRIES, (0, 0))
    for one in map(order, range(count)):
        many, cents = found[one["country"]]
        found[one["country"]] = many + 1, cents + one["cents"]
    return [(country, *both) for country, both in found.items()]
