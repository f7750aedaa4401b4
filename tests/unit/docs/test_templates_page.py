"""The page of templates says of each argument and field what the code does with it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from airflow_provider_streams.template_fields import KINDS
from tests.unit.operators.test_parameters import own
from tests.unit.test_template_fields import PUBLIC, VALUES, fields_of, is_rendered

PAGE = Path(__file__).parents[3] / "docs" / "pages" / "reference" / "templates.md"


def code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


def row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def expected() -> list[str]:
    """The rows of all tables."""
    arguments = [row(code([name]), kind.words) for name, kind in KINDS.items()]
    classes = [
        row(f"`{cls.__name__}`", code(cls.template_fields), code(sorted(own(cls) - set(cls.template_fields))))
        for cls in PUBLIC
    ]
    values = []
    for cls in VALUES:
        rendered = [name for name in fields_of(cls) if is_rendered(cls, name)]
        values.append(row(f"`{cls.__name__}`", code(rendered), code(set_off(fields_of(cls), rendered))))
    return [*arguments, *classes, *values]


def set_off(names: Iterable[str], others: Iterable[str]) -> list[str]:
    return [name for name in names if name not in set(others)]


def test_the_page_has_a_row_for_each_argument_class_and_value():
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert rows == expected(), "\n".join(["the rows should be", *expected()])
