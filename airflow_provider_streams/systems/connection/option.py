"""A setting of a system, described once: for connections, Spark's options, the environment, forms and the docs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["text", "token", "word", "hosts", "http", "names", "flag", "count", "seconds"]
"""What it is: any text, a token, a word without case, `scheme://host:port,..`, `http(s)://host:port`, names between
commas, true or false, a whole number, a number."""


@dataclass(frozen=True, slots=True)
class Option:
    """One setting of a system: the same name in a connection's extras, a Spark option and the docs."""

    name: str
    help: str
    default: str = ""
    kind: Kind = "text"
    choices: tuple[str, ...] = ()
    """The words that it may be; none: any text."""
    most: int = 0
    """The greatest number that it may be, and it must be positive; 0: any number."""
    secret: bool = False
    masked_without: str = ""
    """It is masked unless this option is given: a user's name without a password may be a token in the wrong field."""
    aliases: tuple[str, ...] = ()
    """Names that other connectors gave to it, accepted by the Spark source; compared without case."""
    variables: tuple[str, ...] = ()
    """Environment variables that the system's other tools read. No credentials are taken from such a name: they could
    be meant for another cluster than the connection's."""
    reads: Literal["", "file", "variable"] = ""
    """Which kind of place with credentials it names, on the machine that uses it. Connections need leave for this."""
    api_path: str = ""
    """The path of the service's API, like `admin/v2`. Every request adds it, so the address must not hold it."""
    ports: tuple[tuple[str, int], ...] = ()
    """Of an address of hosts: each scheme that it may have, with its default port. The first two are advised."""
    web_option: str = ""
    """Of an address of hosts: the option that an http(s) address belongs to."""
    carries: tuple[str, ...] = ()
    """Of an address: the options whose values, or what is in their files, travel there as secrets."""
    label: str = ""
    """Its field in the connection form; empty: its name, as words."""
    placeholder: str = ""
    """What an empty field shows."""

    @property
    def is_address(self) -> bool:
        """Whether it says where servers are: only its hosts are shown, as credentials may be among the rest."""
        return self.kind in ("hosts", "http")
