"""Java's types and values that Avro's reflection describes in one way and Jackson writes in another.

Pulsar's Java client makes a class's schema by Avro's reflection, and writes its objects by Jackson.

| Java | the schema says | Jackson writes | column |
|---|---|---|---|
| Instant | a long of microseconds | seconds with nine digits of a fraction | timestamp |
| LocalDate, LocalTime, LocalDateTime | a number | an array: year, month, day, .. | date, time, timestamp_ntz |
| BigDecimal, BigInteger | a string | a number | string: its digits |
| Character, char[] | an int, an array of ints | a text | string |
| a map whose keys are no text | an array of keys and values | an object | map |
| a class of the JDK (`Date`) | a record without fields | as it likes | see `_CLASSES`; of others their JSON |
"""

from __future__ import annotations

import decimal
import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any, Final

from airflow_provider_streams.formats.arrow.times import DAY_MICROS, OUTSIDE
from airflow_provider_streams.formats.avro.columns import branches_with_values, widened
from airflow_provider_streams.model.schema.avro_schema import Array, Enum, Primitive, Record, Recursive, Schema, Union
from airflow_provider_streams.model.schema.types import ArrayOf, Field, MapOf, Simple, StructOf, Type


class Refused(Exception):  # callers catch it: a cause, no error of the package
    """Why a text is no row, and where in it."""

    def __init__(self, rule: str, path: str = "") -> None:
        super().__init__(rule)
        self.rule, self.path = rule, path

    def below(self, name: str) -> Refused:
        """The same, as the outer value says it."""
        return Refused(self.rule, f"{name}{'.' if self.path and not self.path.startswith('[') else ''}{self.path}")

    def __str__(self) -> str:
        return f"{self.path or 'the value'}: {self.rule}"


class Number(str):
    """A number's own digits."""

    __slots__ = ()


def type_in_json(schema: Schema, inner: Callable[[Schema], Type]) -> Type | None:  # noqa: PLR0911  # one for each
    """The type of what Jackson, or another client, writes as JSON, if Avro's own type would not hold it."""
    match schema:
        case Primitive(java_class=java) | Array(java_class=java) if java in _TEXTS:
            return _TEXTS[java]
        case Array(Record(name, (key, value))) if _PAIR.fullmatch(name) and (key.name, value.name) == ("key", "value"):
            keys = inner(key.schema)  # keys of objects are texts: `toString` made them of records
            return MapOf(Simple(keys.word if isinstance(keys, Simple) else "string"), inner(value.schema))
        case Record(name, ()):
            return _CLASSES.get(name, JSON)
        case Enum(_, symbols):
            return Simple("string", symbols=symbols)
        case Recursive():
            return JSON
        case Union() if len(branches := branches_with_values(schema)) > 1 and not widened(branches):
            return JSON
    return None


def with_bean_names(type_: Type) -> Type:
    """Accept two keys for Java's `boolean isOpen`: Jackson writes it as `open`, by the name of its getter.

    Only booleans that are never null have such getters.
    """
    match type_:
        case ArrayOf(element):
            return ArrayOf(with_bean_names(element))
        case MapOf(key, value):
            return MapOf(key, with_bean_names(value))
        case StructOf(fields):
            names = {one.name for one in fields}
            return replace(type_, fields=tuple(_bean_named(one, names) for one in fields))
    return type_


def _bean_named(field: Field, names: set[str]) -> Field:
    found = _IS.fullmatch(field.name)
    if field.type != Simple("boolean") or field.nullable or not found:
        return replace(field, type=with_bean_names(field.type))
    bean = found[1].lower() + found[2]
    return field if bean in names else replace(field, keys=(field.name, bean))


def is_seconds(value: Any) -> bool:
    """Whether Jackson wrote a moment, or a span: seconds, and nine digits of a fraction."""
    return type(value) is Number and ("." in value or "E" in value)


def moment(value: Number) -> int:
    """Microseconds since 1970, cut. Raises Refused if it is no such number."""
    try:
        number = _EXACT.create_decimal(value)
        nanos = int(number.scaleb(9, _EXACT))
    except decimal.DecimalException:
        raise Refused(_NO_SECONDS) from None
    if number.as_tuple().exponent != -_NANO_DIGITS and value != "0.0":
        raise Refused(_NO_SECONDS)
    if number <= -1 and number % 1:
        # of -0.5 s, Jackson up to 2.17 writes -1.5, and later ones -0.5
        raise Refused("is a moment before 1970 with a fraction, which versions of Jackson write differently")
    return nanos // 1000


def time_of_parts(word: str, parts: list[int]) -> int:
    """The column's number of a time that is an array: year, month, day, hour, minute, second, nanosecond.

    The last ones may be missing, and a time of day begins with the hour.

    Raises:
        Refused: it is no such array.
    """
    first, most = _PARTS[word]
    if not first <= len(parts) <= most:
        raise Refused(f"is no array of {first} to {most} numbers")
    try:
        match word:
            case "date":
                return _days(parts)
            case "time":
                return _nanos_of_day(parts)
        return _days(parts[:3]) * DAY_MICROS + _nanos_of_day(parts[3:]) // 1000
    except (ValueError, OverflowError):
        raise Refused(OUTSIDE) from None


def _days(parts: list[int]) -> int:
    return (date(*parts) - _DAY_ZERO).days


def _nanos_of_day(parts: list[int]) -> int:
    hour, minute, second, nano = (*parts, 0, 0)[:4]
    if not 0 <= nano < _SECOND_NANOS:
        raise ValueError
    moment_ = datetime(1970, 1, 1, hour, minute, second, tzinfo=UTC)
    return round((moment_ - _MOMENT_ZERO).total_seconds()) * _SECOND_NANOS + nano


def as_text(value: Any) -> str:
    """A parsed value as JSON again, every digit as it came. Raises Refused if its text is not UTF-8."""
    return utf8(_text(value))


def utf8(text: str) -> str:
    """A text that is UTF-8. Raises Refused if it is not."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refused("is not UTF-8") from None
    return text


def _text(value: Any) -> str:
    match value:
        case Number():
            return str(value)
        case tuple():
            return "{" + ", ".join(f"{_text(key)}: {_text(one)}" for key, one in value) + "}"
        case list():
            return "[" + ", ".join(map(_text, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


JSON: Final = Simple("string", form="json")

_STRING: Final = Simple("string")
_DIGITS: Final = Simple("string", form="number")
_TEXTS: Final = {
    "java.math.BigDecimal": _DIGITS,
    "java.math.BigInteger": _DIGITS,
    "java.lang.Character": _STRING,
    "[C": _STRING,
}
_MILLIS: Final = Simple("timestamp", "ms")
_CLASSES: Final = {
    name: type_
    for type_, names in (
        (
            _MILLIS,
            "java.util.Date java.sql.Date java.sql.Timestamp java.util.Calendar java.util.GregorianCalendar",
        ),
        (Simple("time"), "java.sql.Time"),
        (Simple("timestamp"), "java.time.ZonedDateTime java.time.OffsetDateTime"),
        (Simple("boolean"), "java.util.concurrent.atomic.AtomicBoolean"),
        (Simple("int"), "java.time.Year java.util.concurrent.atomic.AtomicInteger java.util.OptionalInt"),
        (Simple("long"), "java.util.concurrent.atomic.AtomicLong java.util.OptionalLong"),
        (Simple("double"), "java.util.OptionalDouble"),
        (
            _STRING,
            (
                "java.lang.Class java.net.InetAddress java.time.MonthDay java.time.Period java.time.ZoneId "
                "java.time.ZoneOffset java.util.Currency java.util.Locale java.util.TimeZone java.util.regex.Pattern"
            ),
        ),
    )
    for name in names.split()
}
"""Classes of the JDK that are records without fields to Avro's reflection."""

_PAIR: Final = re.compile(r"(.*\.)?avro\.reflect\.Pair\w*")
_IS: Final = re.compile(r"is([A-Z]+)(\w*)", re.ASCII)
_NANO_DIGITS: Final = 9
_NO_SECONDS: Final = "is no whole number, and no seconds with nine digits of a fraction"
_EXACT: Final = decimal.Context(
    prec=60, Emax=1000, Emin=-1000, traps=[decimal.InvalidOperation, decimal.Overflow, decimal.Inexact]
)
_DAY_ZERO: Final = date(1970, 1, 1)
_MOMENT_ZERO: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND_NANOS: Final = 1_000_000_000
_PARTS: Final = {"date": (3, 3), "time": (2, 4), "timestamp_ntz": (5, 7)}
