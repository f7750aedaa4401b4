"""The tree of errors: every one lives in one module, and its drawing is true."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import airflow_provider_streams
from airflow_provider_streams import errors
from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.spark.failures import one_line, typed

ROOT = Path(airflow_provider_streams.__file__).parent


def family(root: type[StreamsError] = StreamsError) -> Iterator[type[StreamsError]]:
    for child in root.__subclasses__():
        if child.__module__ == errors.__name__:
            yield child
            yield from family(child)


def drawn() -> dict[str, tuple[str, bool]]:
    """Name to its parent and whether it is marked retryable, as the module's text draws them."""
    found: dict[str, tuple[str, bool]] = {}
    above = {0: "StreamsError"}
    for line in (errors.__doc__ or "").splitlines():
        if branch := re.match(r"    (?P<indent>[│ ]*)[├└]── (?P<name>\w+)", line):
            depth = len(branch["indent"]) // 4
            above[depth + 1] = branch["name"]
            found[branch["name"]] = above[depth], line.endswith("(retryable)")
    return found


def test_the_drawing_shows_every_error_below_its_parent() -> None:
    assert drawn() == {one.__name__: (one.__bases__[0].__name__, one.retryable) for one in family()}


def test_no_error_of_this_package_is_defined_elsewhere() -> None:
    """Spark hands on text alone: only what `errors` defines is found again by its name."""
    ours = {StreamsError.__name__, *(one.__name__ for one in family())}
    wrong = [
        f"{file.relative_to(ROOT)}: {node.name}"
        for file in ROOT.rglob("*.py")
        if file != ROOT / "errors.py"
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ClassDef) and {ast.unparse(base).rpartition(".")[2] for base in node.bases} & ours
    ]
    assert wrong == []


@pytest.mark.parametrize("kind", list(family()), ids=lambda kind: kind.__name__)
def test_every_error_comes_back_from_sparks_text_as_itself(kind: type[StreamsError]) -> None:
    spoken = kind.__new__(kind)
    Exception.__init__(spoken, "topic-1: 5 of [1:0, 1:5) are gone")
    text = f"Traceback\n  File x\n{kind.__module__}.{kind.__name__}: {one_line(spoken)}\n at org.apache.spark.X"
    found = typed(RuntimeError(text), [])
    assert (type(found), str(found)) == (kind, str(spoken))
    assert found.retryable == kind.retryable  # type: ignore[attr-defined]


def test_sentences_of_many_failures_end_once() -> None:
    causes = {"orders": "DataLoss: gone. Accept it with on_loss='record'.", "clicks": "SinkError: no room"}
    for told in (
        errors.FanOutIncomplete("shop", "window w", 1, causes, retryable=False),
        errors.BackfillIncomplete("shop", 1, causes, retryable=False),
        errors.BackfillIncomplete("shop", 1, dict(reversed(causes.items())), retryable=False),
    ):
        assert ".." not in str(told)
        assert ".;" not in str(told)
