"""A setting of a system, described once: for connections, Spark's options, the environment, forms and the docs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["text", "word", "names", "flag", "count", "seconds"]
"""How its text is read: as it is, without case, between commas, true or false, a whole number, a number."""


@dataclass(frozen=True, slots=True)
class Option:
    """One setting of a system: the same name in a connection's extras, a Spark option and the docs."""

    name: str
    help: str
    default: str = ""
    kind: Kind = "text"
    choices: tuple[str, ...] = ()
    """The words that it may be; none: any text."""
    secret: bool = False
    aliases: tuple[str, ...] = ()
    """Names that other connectors gave to it, accepted by the Spark source; compared without case."""
    variables: tuple[str, ...] = ()
    """Environment variables that the system's other tools read. No credentials are taken from such a name: they could
    be meant for another cluster than the connection's."""
    reads: Literal["", "file", "variable"] = ""
    """What it names on the machine that uses it, with credentials in it: whoever may set it could read that."""
    is_address: bool = False
    """Whether it says where servers are: shown without what else somebody wrote into it."""
    label: str = ""
    """Its field in the connection form; empty: its name, as words."""
    placeholder: str = ""
    """What an empty field shows."""
