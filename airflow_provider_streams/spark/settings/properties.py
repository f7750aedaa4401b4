"""Spark's properties files, such as `spark-defaults.conf`: Java's format of properties, with trimmed values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from airflow_provider_streams.errors import PreflightFailed

BLANKS: Final = "".join(chr(code) for code in range(33))
"""What Spark trims: as Java's `trim`, all up to the space."""

_SPACES: Final = " \t\f"
_KEY: Final = re.compile(r"(?:\\.|[^\\ \t\f=:])*", re.DOTALL)
_SEPARATOR: Final = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Property(NamedTuple):
    """One line of such a file."""

    line: int
    name: str
    value: str


def read_properties(file: Path) -> list[Property]:
    """Spark's settings in a file, in its order. Spark takes no others: their names do not begin with `spark.`.

    Raises:
        PreflightFailed: it cannot be read. The message shows no value.
    """
    try:
        text = file.read_text("utf-8", errors="replace")  # as Java reads it
    except OSError as error:
        raise PreflightFailed(f"Spark's settings in {file} cannot be read ({error.strerror}): see who may") from error
    found = []
    for number, line in _logical_lines(text):
        key = _KEY.match(line)
        assert key is not None  # noqa: S101 - it matches an empty text
        rest = line[key.end() :]
        separator = _SEPARATOR.match(rest)
        assert separator is not None  # noqa: S101 - as above
        try:
            name, value = _plain(key[0]), _plain(rest[separator.end() :])
        except ValueError:
            raise PreflightFailed(f"{file}, line {number}: Spark does not take a \\u without four digits") from None
        if name.startswith("spark."):
            found.append(Property(number, name, trimmed(value)))
    return found


def properties_text(conf: Mapping[str, str]) -> str:
    """The content of a file that Spark reads as these settings."""
    return "".join(f"{_escaped(name)}={_escaped(value)}\n" for name, value in conf.items())


def trimmed(value: str) -> str:
    """A value as Spark takes it from a file: without blanks around it; line breaks stay."""
    return value.strip(BLANKS.replace("\r", "").replace("\n", ""))


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Each line with its number; one that ends with an odd number of backslashes goes on in the next."""
    lines = enumerate(re.split(r"\r\n|\r|\n", text), start=1)
    for number, physical in lines:
        line = physical.lstrip(_SPACES)
        if not line or line[0] in "#!":
            continue
        while (len(line) - len(line.rstrip("\\"))) % 2:
            _, more = next(lines, (0, ""))
            line = line[:-1] + more.lstrip(_SPACES)
        yield number, line


def _plain(text: str) -> str:
    return _ESCAPE.sub(_unescaped, text)


def _unescaped(found: re.Match[str]) -> str:
    code = found[1]
    if code == "u":
        raise ValueError(code)
    return chr(int(code[1:], 16)) if code[0] == "u" and len(code) > 1 else _CONTROLS.get(code, code)


def _escaped(text: str) -> str:
    found = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return f"\\{found}" if found[:1] in (" ", "=", ":") else found
