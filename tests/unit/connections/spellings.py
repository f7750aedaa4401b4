"""The rows of the page about spellings: what is documented is what is tested."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parents[3] / "docs/pages/reference/connection-spellings.md"
SECRET = "SECRET"
CLEAR = ", in clear"
_ROW = re.compile(r"^\| `(?P<written>.+?)` \| (?P<outcome>.+?) \|$")
_PORT = re.compile(r"(?<=[:A ])(6650|6651|6652|8181|9083|909\d)\b")


class Spelling(NamedTuple):
    """A connection as a person writes it, and where it leads."""

    system: str
    written: str
    outcome: str

    @property
    def is_refused(self) -> bool:
        return self.outcome.startswith("rejected: ")

    @property
    def reasons(self) -> list[str]:
        """What the error says."""
        return self.outcome.removeprefix("rejected: ").split(", ")

    @property
    def address(self) -> str:
        return self.outcome.removesuffix(CLEAR).strip("`")

    @property
    def is_tls(self) -> bool:
        return self.address.partition("://")[0] in ("pulsar+ssl", "tls", "ssl", "https")

    @property
    def ports(self) -> list[int]:
        return sorted({int(found) for found in _PORT.findall(self.written.replace("%3A", ":"))})


def spellings() -> list[Spelling]:
    """Every row of the page."""
    return list(_rows(PAGE.read_text()))


def _rows(page: str) -> Iterator[Spelling]:
    system = ""
    for line in page.splitlines():
        if line.startswith("## "):
            system = line.removeprefix("## ")
        elif found := _ROW.fullmatch(line):
            yield Spelling(system, found["written"], found["outcome"])
