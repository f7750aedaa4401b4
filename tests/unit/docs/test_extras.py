"""Every extra of the package, and every fixture for users' tests, is described."""

from __future__ import annotations

import inspect
import tomllib
from pathlib import Path

from airflow_provider_streams.testing import plugin

ROOT = Path(__file__).parents[3]
PAGES = ROOT / "docs" / "pages"


def test_every_extra_is_described():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    page = (PAGES / "guides" / "install.md").read_text()
    assert [name for name in extras if f"\n| `{name}` |" not in page] == []


def test_every_fixture_is_described():
    fixtures = [name for name, one in vars(plugin).items() if type(one).__name__ == "FixtureFunctionDefinition"]
    assert len(fixtures) > 5
    page = (PAGES / "guides" / "testing.md").read_text()
    assert [name for name in fixtures if f"\n| `{name}` |" not in page] == []


def test_every_hook_is_in_the_reference():
    page = (PAGES / "reference" / "hooks.md").read_text()
    for name in ("pulsar.PulsarHook", "pravega.PravegaHook", "schema_registry.SchemaRegistryHook", "base.StreamHook"):
        _, mark, after = page.partition(f"::: airflow_provider_streams.hooks.{name}\n")
        assert mark, name
        assert "members: null" in after.splitlines()[0], "its methods are shown"
    assert inspect.getdoc(plugin)
