"""Settings by option name as the fields of an endpoint, and back; and the addresses among them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.systems.connection.address import normal
from airflow_provider_streams.systems.connection.option import Kind, Option

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def parse(settings: Mapping[str, str], options: Iterable[Option]) -> dict[str, Any]:
    """The values of the given options, each of its option's kind.

    Names and aliases are compared without case. Empty texts count as not given, and unknown names are ignored. Blanks
    are no names: a restriction that was written is not lifted unnoticed.

    Raises:
        InvalidRequest: a setting is malformed.
    """
    given = {name.lower(): str(value).strip() for name, value in settings.items() if value not in {None, ""}}
    values: dict[str, Any] = {}
    for option in options:
        for name in (option.name, *option.aliases):
            text = given.get(name.lower())
            if text or (text is not None and option.kind == "names"):
                parser = _PARSERS.get(option.kind)
                values.setdefault(option.name, parser(option.name, text) if parser else text)
    return values


def texts(endpoint: DataclassInstance) -> dict[str, str]:
    """The fields of an endpoint that are not their defaults, secrets included: the reverse of `parse`."""
    values = {item: getattr(endpoint, item.name) for item in fields(endpoint)}
    return {item.name: text_of(value) for item, value in values.items() if value != item.default}


def text_of(value: object) -> str:
    """A value as `parse` reads it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}" if value == float(f"{value:g}") else str(value)
    return ",".join(value) if isinstance(value, tuple) else str(value)


# Parsers


def flag(name: str, text: str) -> bool:
    """`true` or `false`, and other words for them."""
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


def names(name: str, text: str) -> tuple[str, ...]:
    """Those between commas."""
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    if not found:
        raise InvalidRequest(
            f"{name} holds no name, only commas or blanks: write names between commas, or leave it out"
        )
    return found


_PARSERS: dict[Kind, Callable[[str, str], object]] = {
    "word": lambda _name, text: text.lower(),
    "hosts": lambda _name, text: normal(text),
    "http": lambda _name, text: normal(text),
    "names": names,
    "flag": flag,
    "count": count,
    "seconds": seconds,
}

# What settings hold


_SCHEME = re.compile(r"[a-z][a-z+]*")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+(%\w+)?\]|[\w.-]+)(:\d{1,5})?")


def without_credentials(url: str) -> str:
    """An address as a message may show it: scheme, hosts and ports alone; `..` for anything else."""
    scheme, mark, rest = normal(url.strip()).partition("://")
    if not mark or not _SCHEME.fullmatch(scheme):
        return ".."
    # the text before the last @ may be a password, whatever it holds; or that @ is part of a path or query
    before, _, after = rest.rpartition("@")
    authority = ".." if re.search(r"[/?#]", before) else re.split(r"[/?#]", after, maxsplit=1)[0]
    hosts = (part.strip() for part in authority.split(","))
    return f"{scheme}://{','.join(host if _HOST.fullmatch(host) else '..' for host in hosts)}"


def host_and_port(part: str) -> tuple[str, int | None]:
    """The parts of `host`, `host:port` or `[address]:port`; the host is empty for anything else."""
    try:
        split = urlsplit(f"//{part}")
        host, port = split.hostname, split.port
    except ValueError:
        return "", None
    written = _HOST.fullmatch(part) and host and port != 0
    return (host, port) if host and written else ("", None)


def hosts_of(option: Option, url: str) -> tuple[str, tuple[tuple[str, int], ...]]:
    """The scheme of `scheme://a:1,b:2`, and its hosts with their ports, in order.

    Raises:
        InvalidRequest: another scheme, no host, credentials in the address, or a port that is no number.
    """
    scheme, mark, rest = normal(url.strip()).partition("://")
    shown = without_credentials(url)
    name, ports = option.name, dict(option.ports)
    if not mark or scheme not in ports:
        first, second, *_ = ports
        hint = f"; an http(s) address belongs in {option.web_option}" if scheme in {"http", "https"} else ""
        raise InvalidRequest(f"{name} must start with {first}:// or {second}://, got {shown!r}{hint}")
    if "@" in rest:
        raise InvalidRequest(
            f"{name} {shown!r} must not hold credentials: put them in the connection's own fields, or in options of "
            "their own"
        )
    if re.search(r"[/?#]", rest.rstrip("/")):
        raise InvalidRequest(
            f"{name} must end with its hosts and ports; after {shown!r}, there is more: leave that out"
        )
    hosts = [host_and_port(part.strip()) for part in rest.rstrip("/").split(",")]
    if not all(host for host, _ in hosts):
        raise InvalidRequest(f"{name} {shown!r}: write each host as host or host:port")
    return scheme, tuple((host, port or ports[scheme]) for host, port in hosts)


def check_http(name: str, url: str) -> None:
    """Check that an option is empty, or the address of a service and nothing more.

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


def check_api_path(name: str, url: str, api_path: str) -> None:
    """Check that an address does not hold the path that requests add to it.

    A proxy's own path may come before it: `https://proxy/pulsar` is correct, `https://proxy/pulsar/admin/v2` is not.

    Args:
        name: of the option.
        url: its value, or an empty text.
        api_path: what requests add; empty: nothing.

    Raises:
        InvalidRequest: it does, in any version of the API; or its whole path is the first part of `api_path`.
    """
    if not api_path:
        return
    api = api_path.partition("/")[0]
    path = "/".join(part for part in _split(url).path.split("/") if part)
    if path == api or re.search(rf"(^|/){api}/v\d+(/|$)", path):
        raise InvalidRequest(
            f"{name} must not hold the path /{path}: every request adds /{api_path} to the address. Give the address "
            f"of the service alone, for example {without_credentials(url)}"
        )


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


def token_end(token: str) -> float | None:
    """When a JWT expires by its own claim, in seconds since 1970, unverified; None: it has none, or is no JWT."""
    try:
        _header, claims, _signature = token.split(".")
        return float(json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))["exp"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
