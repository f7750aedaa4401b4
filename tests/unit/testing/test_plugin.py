"""The plugin is there without a line of set-up, and costs nothing until a fixture is used."""

import subprocess
import sys
from importlib.metadata import entry_points

HEAVY = ("airflow", "pulsar", "pyspark", "grpc", "pyarrow", "numpy", "httpx", "sqlalchemy")


def test_importing_the_plugin_imports_nothing_heavy():
    program = (
        "import sys, airflow_provider_streams.testing.plugin\n"
        f"print(sorted(set(sys.modules) & set({HEAVY!r})), 'airflow_provider_streams.testing.servers' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[] False"


def test_pytest_finds_the_plugin_by_its_entry_point(pytestconfig):
    (entry,) = (e for e in entry_points(group="pytest11") if e.name == "airflow_provider_streams")
    assert entry.value == "airflow_provider_streams.testing.plugin"
    assert pytestconfig.pluginmanager.has_plugin("airflow_provider_streams")


CHANGING = """
import pytest

class Broker:
    seen = 0
    def inventory(self):
        self.seen += 1
        return {"topic": ["left behind"] * self.seen}

@pytest.fixture(scope="session")
def pulsar_server():
    return Broker()

def test_reads(pulsar_unchanged):
    pass
"""


def test_a_broker_left_changed_fails_the_test_that_changed_it(tmp_path):
    (tmp_path / "test_changing.py").write_text(CHANGING)
    pytest_here = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    told = subprocess.run([*pytest_here, str(tmp_path)], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert told.returncode == 1, told.stdout
    assert "the test changed the broker's topics or subscriptions" in told.stdout
    assert "1 passed, 1 error" in told.stdout
