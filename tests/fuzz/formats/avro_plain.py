"""Avro as the specification reads, strictly and one value after the other: what the decoder of steps is held against.

Values are as `pa.array` takes them for the column that the documentation promises.
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import json
import math
import struct
import uuid
from typing import Any

DAYS = (-719_162, 2_932_896)
DAY_US = 86_400_000_000
LEVELS = 64
UNITS = {"millis": 1000, "micros": 1, "nanos": 0.001}


class Refused(Exception):
    """Bytes that are no value of the schema."""


def decode(schema: Any, data: bytes) -> Any:
    """The one value that the bytes hold."""
    reader = _Reader(data)
    value = reader.value(schema, {}, 0)
    if reader.at != len(data):
        raise Refused("more bytes")
    return value


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self.data):
            raise Refused("too short")
        self.at += size
        return self.data[self.at - size : self.at]

    def long(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value >= 1 << 64:
                    raise Refused("a varint beyond 64 bits")
                return (value >> 1) ^ -(value & 1)
        raise Refused("a varint of more than ten bytes")

    def value(self, schema: Any, named: dict[str, Any], depth: int, *, as_json: bool = False) -> Any:
        if isinstance(schema, list):
            return self.union(schema, named, depth, as_json=as_json)
        if isinstance(schema, str):
            if schema in named:
                if depth >= LEVELS:
                    raise Refused("too deep")
                inner = self.value(named[schema], named, depth + 1, as_json=True)
                return inner if as_json else json.dumps(inner, ensure_ascii=False)
            schema = {"type": schema}
        if "logicalType" in schema:
            found = self.logical(schema)
            return _said_time(found, schema["logicalType"]) if as_json else found
        kind = schema["type"]
        if kind == "record":
            named = {**named, schema["name"]: schema}
            return {one["name"]: self.value(one["type"], named, depth, as_json=as_json) for one in schema["fields"]}
        if kind == "array":
            return self.items(lambda: self.value(schema["items"], named, depth, as_json=as_json), schema["items"])
        if kind == "map":
            pairs = self.items(
                lambda: (self.text(), self.value(schema["values"], named, depth, as_json=as_json)), "string"
            )
            if len({key for key, _ in pairs}) < len(pairs):
                raise Refused("a key twice")
            return dict(pairs) if as_json else pairs
        if kind == "enum":
            index = self.long()
            if not 0 <= index < len(schema["symbols"]):
                raise Refused("no symbol")
            return schema["symbols"][index]
        found = self.take(schema["size"]) if kind == "fixed" else self.primitive(kind)
        return _said(found) if as_json else found

    def primitive(self, kind: str) -> Any:
        match kind:
            case "null":
                return None
            case "boolean":
                byte = self.take(1)[0]
                if byte > 1:
                    raise Refused("no boolean")
                return byte == 1
            case "int":
                number = self.long()
                if not -(1 << 31) <= number < 1 << 31:
                    raise Refused("no int")
                return number
            case "long":
                return self.long()
            case "float":
                return struct.unpack("<f", self.take(4))[0]
            case "double":
                return struct.unpack("<d", self.take(8))[0]
            case "bytes":
                return self.take(self.long())
        return self.text()

    def text(self) -> str:
        try:
            return self.take(self.long()).decode()
        except UnicodeDecodeError:
            raise Refused("no UTF-8") from None

    def logical(self, schema: dict[str, Any]) -> Any:
        kind, name = schema["type"], schema["logicalType"]
        if name == "decimal":
            raw = self.take(schema["size"]) if kind == "fixed" else self.primitive("bytes")
            number = int.from_bytes(raw, "big", signed=True)
            if not raw or abs(number) >= 10 ** schema["precision"]:
                raise Refused("no decimal")
            return decimal.Decimal(number).scaleb(-schema["scale"], decimal.Context(prec=60))
        if name == "uuid":
            return str(uuid.UUID(bytes=self.take(16))) if kind == "fixed" else self.text()
        number = self.primitive(kind)
        if name == "date":
            if not DAYS[0] <= number <= DAYS[1]:
                raise Refused("no date")
            return number
        unit = name.rpartition("-")[2]
        micros = number // 1000 if unit == "nanos" else number * int(UNITS[unit])
        low, high = (0, DAY_US) if name.startswith("time-") else (DAYS[0] * DAY_US, (DAYS[1] + 1) * DAY_US)
        if not low <= micros < high:
            raise Refused("no time")
        return micros * 1000 if name.startswith("time-") else micros

    def union(self, schema: list[Any], named: dict[str, Any], depth: int, *, as_json: bool) -> Any:
        index = self.long()
        if not 0 <= index < len(schema):
            raise Refused("no branch")
        branch = schema[index]
        value = self.value(branch, named, depth, as_json=as_json)
        others = [one for one in schema if one != "null"]
        if (
            as_json
            or branch == "null"
            or len(others) == 1
            or set(map(str, others)) in ({"int", "long"}, {"float", "double"})
        ):
            return value
        return {f"member_{_name(branch)}": value}

    def items(self, read: Any, item: Any) -> list[Any]:
        found: list[Any] = []
        free = _takes_nothing(item)
        while count := self.long():
            if count < 0:
                count = -count
                self.long()
            if count > (1_000 - len(found) if free else len(self.data) - self.at):
                raise Refused("more items than bytes")
            found += [read() for _ in range(count)]
        return found


def _said(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")
    return value


def _said_time(value: Any, logical: str) -> Any:
    if logical == "decimal":
        return str(value)
    if logical == "uuid":
        return value
    if logical == "date":
        return str(dt.date(1970, 1, 1) + dt.timedelta(value))
    if logical.startswith("time-"):
        return (dt.datetime(1, 1, 1) + dt.timedelta(microseconds=value // 1000)).strftime("%H:%M:%S.%f") + "000"  # noqa: DTZ001
    text = (dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=value)).isoformat(timespec="microseconds")  # noqa: DTZ001
    return text if logical.startswith("local-") else f"{text}Z"


def _name(branch: Any) -> str:
    if isinstance(branch, str):
        return branch.lower()
    return str(branch.get("name", branch["type"])).lower()


def _takes_nothing(schema: Any) -> bool:
    if isinstance(schema, dict) and schema["type"] == "record":
        return all(_takes_nothing(one["type"]) for one in schema["fields"])
    if isinstance(schema, dict) and schema["type"] == "fixed":
        return schema["size"] == 0
    return schema == "null" or (isinstance(schema, dict) and schema["type"] == "null")
