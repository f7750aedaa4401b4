"""Settings by option name as the fields of an endpoint, and back: what every system's endpoint does alike."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.systems.option import Kind, Option

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def parse(settings: Mapping[str, str], options: Iterable[Option]) -> dict[str, Any]:
    """The given options' values by their names; names and aliases are compared without case, unknown ones ignored.

    Args:
        settings: texts; empty ones count as not given.
        options: the known ones; a value is of its option's kind.

    Raises:
        InvalidRequest: a setting is malformed.
    """
    given = {name.lower(): str(value).strip() for name, value in settings.items() if value not in {None, ""}}
    values: dict[str, Any] = {}
    for option in options:
        for name in (option.name, *option.aliases):
            text = given.get(name.lower())
            if text:
                values.setdefault(option.name, _PARSERS[option.kind](option.name, text))
    return values


def texts(endpoint: DataclassInstance) -> dict[str, str]:
    """The fields of an endpoint that are not their defaults, secrets included: the reverse of `parse`."""
    values = {item: getattr(endpoint, item.name) for item in fields(endpoint)}
    return {item.name: _text(value) for item, value in values.items() if value != item.default}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(value) if isinstance(value, tuple) else str(value)


# Parsers


def flag(name: str, text: str) -> bool:
    """`true` or `false`, and what people write for them."""
    try:
        return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[text.lower()]
    except KeyError:
        raise InvalidRequest(f"{name} must be true or false, got {text!r}") from None


def seconds(name: str, text: str) -> float:
    """A duration."""
    try:
        return float(text)
    except ValueError:
        raise InvalidRequest(f"{name} must be a number of seconds, got {text!r}") from None


def count(name: str, text: str) -> int:
    """A whole number."""
    try:
        return int(text)
    except ValueError:
        raise InvalidRequest(f"{name} must be a whole number, got {text!r}") from None


def names(_name: str, text: str) -> tuple[str, ...]:
    """Names between commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def lower(_name: str, text: str) -> str:
    """A word, without case."""
    return text.lower()


_PARSERS: dict[Kind, Callable[[str, str], object]] = {
    "text": lambda _name, text: text,
    "word": lower,
    "names": names,
    "flag": flag,
    "count": count,
    "seconds": seconds,
}

# What settings hold


_SCHEME = re.compile(r"[a-z][a-z+]*")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+(%\w+)?\]|[\w.-]+)(:\d{1,5})?")


def without_credentials(url: str) -> str:
    """An address as a message may show it: scheme, hosts and ports; of what is not that, nothing."""
    scheme, mark, rest = url.strip().partition("://")
    if not mark or not _SCHEME.fullmatch(scheme):
        return ".."
    # what stands before the last @ may be a password, whatever it holds; or that @ is part of a path or query
    before, _, after = rest.rpartition("@")
    authority = ".." if re.search(r"[/?#]", before) else re.split(r"[/?#]", after, maxsplit=1)[0]
    hosts = (part.strip() for part in authority.split(","))
    return f"{scheme}://{','.join(host if _HOST.fullmatch(host) else '..' for host in hosts)}"


def host_and_port(part: str) -> tuple[str, int | None]:
    """Of `host`, `host:port` or `[address]:port`; the host is empty if it is none of these."""
    try:
        split = urlsplit(f"//{part}")
        host, port = split.hostname, split.port
    except ValueError:
        return "", None
    written = _HOST.fullmatch(part) and host and port != 0
    return (host, port) if host and written else ("", None)


def check_http(name: str, url: str) -> None:
    """Whether an option is empty, or the address of a service and nothing more.

    Raises:
        InvalidRequest: it is not; only its host is shown.
    """
    if not url:
        return
    split = _split(url)
    authority = split.netloc.rpartition("@")[2]
    is_address = split.scheme in {"http", "https"} and host_and_port(authority)[0] and url.isprintable()
    if not is_address or split.netloc != authority or split.query or split.fragment:
        shown = without_credentials(url)
        raise InvalidRequest(f"{name} must be http(s)://host:port without credentials or a query, got {shown!r}")


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


def token_end(token: str) -> float | None:
    """When a JWT says that it expires, in seconds since 1970, unverified; None: it is none, or does not say."""
    try:
        _header, claims, _signature = token.split(".")
        return float(json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["exp"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
