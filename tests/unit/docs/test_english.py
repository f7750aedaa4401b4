"""The documentation is written in short sentences and plain words; `docs/style/words.txt` lists single words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "pages").rglob("*.md"))]
MOST_WORDS = 35
BANNED = re.compile(
    r"\b(that of|is told|are told|of now|of before|who does|who reads|nobody|somebody|anybody|beside|anew|lies"
    r"|mends?|mended)\b|, too\b",
    re.IGNORECASE,
)
"""Phrases that readers must decode: see the rules for contributors."""

_CODE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_GENERATED = re.compile(r"^(::: .*|    options: .*|--8<--.*)$", re.MULTILINE)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_BLOCK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*|>#]|\d+\.)\s)|\||<br>")
_SENTENCE = re.compile(r"(?<=[.!?:])\s+")


def prose(page: Path) -> str:
    """A page without code, generated parts and the addresses of links; inline code is one word."""
    text = _GENERATED.sub("", _CODE.sub("\n\n", page.read_text()))
    return re.sub(r"`[^`]*`", "code", _LINK.sub(r"\1", text))


def sentences(page: Path) -> Iterator[str]:
    for block in _BLOCK.split(prose(page)):
        yield from _SENTENCE.split(" ".join(block.split()))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_sentences_are_short(page):
    assert [sentence for sentence in sentences(page) if len(sentence.split()) > MOST_WORDS] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_phrases_are_plain(page):
    assert [found[0] for found in BANNED.finditer(prose(page))] == []


def test_long_sentences_and_odd_phrases_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"One. {'word ' * 36}end.\n\n`code that of` is fine. Its size is that of a file.\n")
    assert [len(sentence.split()) for sentence in sentences(page) if len(sentence.split()) > MOST_WORDS] == [37]
    assert [found[0] for found in BANNED.finditer(prose(page))] == ["that of"]
