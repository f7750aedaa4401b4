"""The reference has everything that the package offers."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import airflow_provider_streams
from airflow_provider_streams import errors

PACKAGE = Path(airflow_provider_streams.__file__).parent
REFERENCE = PACKAGE.parent / "docs" / "pages" / "reference"
ERRORS = {
    name: error
    for name, error in vars(errors).items()
    if inspect.isclass(error) and issubclass(error, errors.StreamsError) and error is not errors.StreamsError
}


def generated() -> set[str]:
    """The last parts of all names that the reference generates from code."""
    text = "".join(page.read_text() for page in REFERENCE.glob("*.md"))
    return {name.rpartition(".")[2] for name in re.findall(r"^::: (\S+)$", text, re.MULTILINE)}


def test_every_public_name_is_in_the_reference():
    public = set(airflow_provider_streams.__all__) - {"__version__"}
    assert public - generated() == set()


@pytest.mark.parametrize("folder", ["operators", "sensors", "hooks"])
def test_every_class_of_airflows_is_in_the_reference(folder):
    ending = {"operators": "Operator", "sensors": "Sensor", "hooks": "Hook"}[folder]
    bases = {"ConditionSensor", "StateSensor", "ConnectionHook", "SettingsHook"}
    text = "".join(file.read_text() for file in (PACKAGE / folder).glob("*.py"))
    classes = {name for name in re.findall(r"^class ([A-Z]\w+)\(", text, re.MULTILINE) if name.endswith(ending)}
    assert len(classes) > 3
    assert classes - bases - generated() == set()


def test_every_error_is_in_the_reference_with_its_policy():
    page = (REFERENCE / "errors.md").read_text()
    rows = re.findall(r"^\| (.+?) \| (yes|no) \|", page, re.MULTILINE)
    described = {name: retried for cell, retried in rows for name in re.findall(r"`(\w+)", cell)}
    assert set(ERRORS) - described.keys() == set()
    wrong = [name for name, error in ERRORS.items() if described[name] != ("yes" if error.retryable else "no")]
    assert wrong == []


def test_every_metric_is_in_the_reference():
    sent = set(re.findall(r'"(streams\.\w+)"', (PACKAGE / "airflow_runtime" / "metrics.py").read_text()))
    assert len(sent) > 5
    page = (REFERENCE / "metrics.md").read_text()
    assert [name for name in sent if f"`{name}`" not in page] == []
