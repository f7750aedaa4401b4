from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import airflow_provider_streams
from airflow_provider_streams.plugin.plugin import StreamsPlugin, script_url


def test_airflow_finds_the_plugin_once():
    """If the provider's info also declared it, it would be an import error without lazy discovery."""
    from airflow_provider_streams.provider_info import get_provider_info

    (found,) = (one for one in entry_points(group="airflow.plugins") if one.name == "streams")
    assert found.load() is StreamsPlugin
    assert "plugins" not in get_provider_info()


def test_only_who_serves_a_request_imports_the_routes():
    code = (
        "import airflow.plugins_manager, airflow_provider_streams.plugin.plugin, sys; "
        "print('airflow_provider_streams.plugin.api' in sys.modules, 'airflow_provider_streams.journal' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split()[-2:] == ["False", "False"]


@pytest.mark.parametrize(
    ("base_url", "script"),
    [
        ("", "/streams/static/main.js"),
        ("http://localhost:8080", "/streams/static/main.js"),
        ("https://tools.example/airflow/", "/airflow/streams/static/main.js"),
        ("/airflow", "/airflow/streams/static/main.js"),
    ],
)
def test_the_script_is_below_airflow_wherever_a_proxy_puts_it(monkeypatch, base_url, script):
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", base_url)
    assert script_url().partition("?")[0] == script
    assert StreamsPlugin.fastapi_apps[0]["url_prefix"] == "/streams"


def test_the_page_asks_no_other_host():
    static = Path(airflow_provider_streams.__file__).parent / "plugin" / "static"
    scripts = sorted(static.glob("*.js"))
    assert "main.js" in {script.name for script in scripts}
    assert [
        script.name for script in scripts if "http://" in script.read_text() or "https://" in script.read_text()
    ] == []
