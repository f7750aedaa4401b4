"""Errors on the command line name its options, not the operators' arguments."""

from __future__ import annotations

import ast
import re
from argparse import Namespace
from pathlib import Path

import pytest

import airflow_provider_streams
from airflow_provider_streams.cli.option_names import as_options

ROOT = Path(airflow_provider_streams.__file__).parent


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("accept the loss with on_loss='record'.", "accept the loss with --on-loss record."),
        ("make a new plan with replan=True.", "make a new plan with --replan."),
        ("(full_refresh=True sets aside what it holds)", "(--full-refresh sets aside what it holds)"),
        ("or overlap='replace' takes them out", "or --replace-overlaps takes them out"),
        ("a greater max_skew moves this edge", "a greater --max-skew moves this edge"),
        ("go on with reader='shop.read events'", "go on with --reader 'shop.read events'"),
        ("or read bytes with value=Bytes().", "or read bytes with --value-format bytes."),
        ("Write value=Registry(conn_id=..).", "Write --value-format registry."),
        (
            "value_version: without value_format=auto or registry",
            "--value-version: without --value-format auto or registry",
        ),
        (
            "value=Auto('..'), value=Auto(refuse_unmatched=True): they are for JSON",
            "--value-format auto --value-schema .., --value-format auto --value-refuse-unmatched: they are for JSON",
        ),
        ("schema: value_schema: it says nothing", "schema: --value-schema: it says nothing"),
        ("a column 'value_schema' or value_of", "a column 'value_schema' or value_of"),
        ("Write value='auto'.", "Write --value-format auto."),
        ("columns: value=Auto(version='0'), where", "columns: --value-format auto --value-version 0, where"),
        ("(value=Auto(version=..), with replan=True)", "(--value-format auto --value-version .., with --replan)"),
        ("all: value=Auto(as_text=True).", "all: --value-format auto --value-as-text."),
        ("or value=Registry(type='Order').", "or --value-format registry --value-type Order."),
        ("value=Auto('a int from b')", "--value-format auto --value-schema 'a int from b'"),
        (
            "value=Auto('a struct<`b c`: decimal(20,9)>'): a declared field",
            "--value-format auto --value-schema 'a struct<`b c`: decimal(20,9)>': a declared field",
        ),
        ("with widen=True the table gets it", "with --sink-option widen=true the table gets it"),
        ("the extra 'allowed_hosts', or tls_ca_file", "the extra 'allowed_hosts', or tls_ca_file"),
        ("the column event_time_x and a.max_skew", "the column event_time_x and a.max_skew"),
    ],
)
def test_an_argument_becomes_its_option(said, shown):
    assert as_options(said) == shown


HINTS = "(full_refresh=True sets aside), or value=Auto(version='0') with widen=True"


@pytest.mark.parametrize(
    ("args", "shown"),
    [
        (
            {"full_refresh": False, "value_format": None, "value_version": None, "sink_option": [], "dag_id": None},
            "(--full-refresh sets aside), or --value-format auto --value-version 0 with --sink-option widen=true",
        ),
        (
            {"value_format": None, "value_version": None, "dag_id": None},
            (
                "(`airflow streams read .. --full-refresh` sets aside), "
                "or --value-format auto --value-version 0 with `airflow streams read .. --sink-option widen=true`"
            ),
        ),
        (
            {"full_refresh": False, "value_format": None, "value_version": None, "sink_option": [], "dag_id": "shop"},
            "(--full-refresh sets aside), or value=Auto(version='0') with widen=True",
        ),
    ],
    ids=["taken", "not taken", "of a DAG"],
)
def test_an_option_is_named_as_the_running_command_can_use_it(args, shown):
    assert as_options(HINTS, Namespace(**args)) == shown


def hints() -> set[str]:
    """Every `argument=value` in a text of the rooms whose errors reach the command line."""
    found: set[str] = set()
    for room in ("errors", "windows", "model", "lake", "journal"):
        path = ROOT / room
        for file in path.rglob("*.py") if path.is_dir() else [path]:
            tree = ast.parse(file.read_text())
            docs = {ast.get_docstring(node, clean=False) for node in ast.walk(tree) if isinstance(node, _DOCUMENTED)}
            texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
            for text in texts:
                if isinstance(text, str) and text not in docs and " " in text:
                    found |= set(re.findall(r"\b[a-z_]+=(?:True|'[a-z]+'|Bytes\(\)|Auto\([^)]*\))", text))
    return found


_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def test_every_hint_of_an_error_has_an_option():
    assert len(hints()) > 5
    assert [one for one in sorted(hints()) if as_options(one) == one] == []


def test_commands_of_schemas_name_the_registry_alone():
    args = Namespace(registry=None, dag_id=None)
    assert as_options("which registry has those, value=Registry(..)", args) == (
        "which registry has those, --registry CONN_ID"
    )
