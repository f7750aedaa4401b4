"""The plugin is there for those who ask for it, and costs nothing until a fixture is used."""

import subprocess
import sys
import tomllib
from pathlib import Path

HEAVY = ("airflow", "pulsar", "pyspark", "grpc", "pyarrow", "numpy", "httpx", "sqlalchemy")


def test_importing_the_plugin_imports_nothing_heavy():
    program = (
        "import sys, airflow_provider_streams.testing.plugin\n"
        f"print(sorted(set(sys.modules) & set({HEAVY!r})), 'stream_servers' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[] False"


def test_nobody_has_the_plugin_who_does_not_ask_for_it():
    """Everybody's pytest would load it, in whatever project, once the package is installed."""
    declared = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]["entry-points"]
    assert "pytest11" not in declared


CHANGING = """
import pytest

class Broker:
    seen = 0
    def inventory(self):
        self.seen += 1
        return {"topic": ["left over"] * self.seen}

@pytest.fixture(scope="session")
def pulsar_server():
    return Broker()

def test_reads(pulsar_unchanged):
    pass
"""


REFUSING = """
import httpx
import pytest

class Broker:
    def create_namespace(self, namespace):
        pass
    def delete_namespace(self, namespace):
        request = httpx.Request("DELETE", "http://127.0.0.1")
        raise httpx.HTTPStatusError("500 {reason}", request=request, response=httpx.Response(500, request=request))

@pytest.fixture(scope="session")
def pulsar_server():
    return Broker()

def test_reads(pulsar_namespace):
    pass
"""


def run(folder, module):
    """What pytest says of tests in `module` that use the plugin."""
    (folder / "conftest.py").write_text('pytest_plugins = ["airflow_provider_streams.testing.plugin"]')
    (folder / "test_module.py").write_text(module)
    pytest_here = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(folder)]
    return subprocess.run([*pytest_here, str(folder)], capture_output=True, text=True, check=False, cwd=folder)


def test_a_broker_left_changed_fails_the_test_that_changed_it(tmp_path):
    told = run(tmp_path, CHANGING)
    assert told.returncode == 1, told.stdout
    assert "the test changed the broker's topics or subscriptions" in told.stdout
    assert "1 passed, 1 error" in told.stdout


def test_a_namespace_that_the_broker_cannot_delete_any_more_is_no_fault_of_the_test(tmp_path):
    told = run(tmp_path, REFUSING.replace("{reason}", "TopicFencedException: Topic is already fenced"))
    assert told.returncode == 0, told.stdout


def test_any_other_refusal_to_delete_a_namespace_fails_the_test(tmp_path):
    told = run(tmp_path, REFUSING.replace("{reason}", "Namespace has active topics"))
    assert told.returncode == 1, told.stdout
    assert "1 passed, 1 error" in told.stdout
