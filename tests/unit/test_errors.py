"""The tree of errors: every one lives in one folder, and its drawing is true."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import airflow_provider_streams
from airflow_provider_streams import errors
from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.spark.error_transport import one_line, typed

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
        if file.parent != ROOT / "errors"
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


TEXTS = {"detail", "reason", "cause", "why", "lost", "differences", "problems", "changes", "failed", "failures"}
"""Parameters with words of others: of a server, a library, or another error."""


def made_with(kind: type[StreamsError], text: str) -> StreamsError | None:
    """An error of this class, with a text wherever it takes words of others; None: it takes none."""
    parameters = inspect.signature(kind).parameters
    if not TEXTS & parameters.keys():
        return None

    def value(name: str, annotation: str) -> Any:
        found: Any = text if name in TEXTS else name
        if annotation.startswith("Mapping"):
            return {"one": found, "two": found}
        if annotation.startswith(("Sequence", "list")):
            return [found, found]
        return 3 if annotation.startswith(("int", "float")) else found

    needed = {name: one for name, one in parameters.items() if one.default is one.empty or name in TEXTS}
    return kind(**{name: value(name, str(one.annotation)) for name, one in needed.items()})


@pytest.mark.parametrize("text", ["it said so", "it said so.", "it said so. ", "it said so...", "did it say so?"])
@pytest.mark.parametrize("kind", list(family()), ids=lambda kind: kind.__name__)
def test_the_words_of_others_end_with_one_mark(kind: type[StreamsError], text: str) -> None:
    error = made_with(kind, text)
    if error is not None:
        said = str(error.name_doctor())
        assert text.strip(". ") in said
        assert not re.search(r"\.{2}|\.[;,)]|[?!]\.", said.removesuffix(text)), said


def test_what_is_left_out_stays_marked() -> None:
    assert errors.as_sentence("http://..") == "http://..."
    assert errors.as_clause("known: a, b, ..") == "known: a, b, .."


def test_accepting_a_loss_is_advised_only_where_something_is_lost() -> None:
    causes = {"10:00": "RowCountDecreased: 3 rows instead of 5; accept them with allow_fewer_rows=True"}
    assert "on_loss" not in str(errors.BackfillIncomplete("shop", 1, causes, retryable=False))
    assert "on_loss" not in str(errors.FanOutIncomplete("shop", "window w", 1, causes, retryable=False))


@pytest.mark.parametrize("cause", [f"its schema version 0 {errors.UNFIT}: v is ..", f"v: {errors.NO_BRANCH} long"])
def test_an_event_that_no_column_holds_names_the_ways_out(cause: str) -> None:
    text = str(errors.DecodeError("t", "1:2", "0", cause))
    assert all(way in text for way in ("value=Auto(version='0')", "value=Auto(as_text=True)", "on_decode_error='drop'"))
    assert "or correct the schema" in str(errors.DecodeError("t", "1:2", "0", "v: ends early"))


def test_an_event_that_a_declared_field_would_take_names_the_declaration() -> None:
    error = errors.DecodeError("t", "1:2", "0", "e: is lacking, or null", declarations=("e int from ..", "e int"))
    text = str(error)
    assert "value=Auto('e int from ..') or value=Auto('e int'): a declared field may be null" in text
    assert all(way in text for way in ("on_decode_error='quarantine'", "correct the schema", "with replan=True"))
    error.for_table(keeps_events=False, keeps_columns=True)
    assert "value=Auto('e int')" in str(error)
    assert "quarantine" not in str(error)
    assert "another reader into another table" in str(error)
    unfit = str(errors.DecodeError("t", "1:2", "0", f"v: {errors.NO_BRANCH} long", declarations=("v json",)))
    assert "v json" not in unfit


def test_an_error_that_doctor_foresees_names_it_once_where_it_leaves_the_package() -> None:
    error = errors.AuthenticationFailed("broker")
    assert errors.DOCTOR_HINT not in str(error), "messages quote each other"
    assert str(error.name_doctor().name_doctor()) == f"{errors.AuthenticationFailed('broker')} {errors.DOCTOR_HINT}"


def test_an_error_that_nothing_could_foresee_does_not_name_doctor() -> None:
    assert errors.DOCTOR_HINT not in str(errors.ReceiptMismatch("f", ["x"]).name_doctor())


def test_an_error_of_a_check_that_doctor_makes_names_it_though_its_class_does_not() -> None:
    with pytest.raises(errors.InvalidRequest) as found, errors.foreseen():
        raise errors.InvalidRequest("a connection's setting")
    assert str(found.value) == "a connection's setting"
    assert str(found.value.name_doctor()) == f"a connection's setting. {errors.DOCTOR_HINT}"
    assert errors.DOCTOR_HINT not in str(errors.InvalidRequest("an argument").name_doctor())
