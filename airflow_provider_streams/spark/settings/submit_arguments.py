"""The variable `PYSPARK_SUBMIT_ARGS`: what it says to the `spark-submit` that PySpark starts for a session."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from airflow_provider_streams.errors import PreflightFailed
from airflow_provider_streams.spark.settings.properties import trimmed
from airflow_provider_streams.spark.settings.spark_settings import SECRET_NAME, SparkSettings

VARIABLE: Final = "PYSPARK_SUBMIT_ARGS"
_SHELL: Final = "pyspark-shell"
"""What such arguments end with: no program, for the program runs already."""

_SETTINGS: Final = {
    "--archives": "spark.archives",
    "--deploy-mode": "spark.submit.deployMode",
    "--driver-class-path": "spark.driver.extraClassPath",
    "--driver-cores": "spark.driver.cores",
    "--driver-java-options": "spark.driver.extraJavaOptions",
    "--driver-library-path": "spark.driver.extraLibraryPath",
    "--driver-memory": "spark.driver.memory",
    "--exclude-packages": "spark.jars.excludes",
    "--executor-cores": "spark.executor.cores",
    "--executor-memory": "spark.executor.memory",
    "--files": "spark.files",
    "--jars": "spark.jars",
    "--keytab": "spark.kerberos.keytab",
    "--master": "spark.master",
    "--name": "spark.app.name",
    "--num-executors": "spark.executor.instances",
    "--packages": "spark.jars.packages",
    "--principal": "spark.kerberos.principal",
    "--py-files": "spark.submit.pyFiles",
    "--queue": "spark.yarn.queue",
    "--remote": "spark.remote",
    "--repositories": "spark.jars.repositories",
    "--total-executor-cores": "spark.cores.max",
}
"""An option of spark-submit to the setting that it stands for."""
_CONF: Final = {"--conf", "-c"}
_KEPT: Final = {"--proxy-user": True, "--verbose": False, "-v": False}
"""Those that are no settings and may stay, and whether a value follows."""
_FILE: Final = "--properties-file"
_LOAD: Final = "--load-spark-defaults"


@dataclass(frozen=True)
class SubmitArguments:
    """What the variable says."""

    settings: SparkSettings = field(default_factory=SparkSettings)
    properties_file: Path | None = None
    loads_defaults: bool = True
    """Whether `spark-defaults.conf` counts too."""
    kept: tuple[str, ...] = ()
    """Arguments that are no settings."""

    def around(self, file: Path) -> str:
        """The variable's value with all settings in a file."""
        return shlex.join([_FILE, str(file), *self.kept, _SHELL])


def submit_arguments(environment: Mapping[str, str] | None = None) -> SubmitArguments:
    """Of this process's variable, as Spark reads it: an option of its own counts more than `--conf`.

    Raises:
        PreflightFailed: Spark, or Spark inside a task, cannot start with them. The message hides secrets.
    """
    text = (os.environ if environment is None else environment).get(VARIABLE)
    if text is None:
        return SubmitArguments()
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise PreflightFailed(f"{VARIABLE} cannot be split into arguments ({error}): correct or unset it") from None
    return _Reading(words).result()


class _Reading:
    """One pass over the words."""

    def __init__(self, words: list[str]) -> None:
        self._all, self._left = words, list(words)
        self._conf: dict[str, str] = {}
        self._options: dict[str, str] = {}
        self._kept: list[str] = []
        self._file: Path | None = None
        self._loads = False

    def result(self) -> SubmitArguments:
        while self._left:
            word = self._left.pop(0)
            if not word.startswith("-"):
                self._end(word)
                conf = {**self._conf, **self._options}
                origins = dict.fromkeys(conf, f"the variable {VARIABLE}")
                loads = self._file is None or self._loads
                return SubmitArguments(SparkSettings(conf, origins), self._file, loads, tuple(self._kept))
            self._option(word)
        raise self._wrong(f"it does not end with {_SHELL}", f"Append {_SHELL}")

    def _option(self, word: str) -> None:
        option, has_value, value = word.partition("=")
        if _KEPT.get(option) is False:
            self._kept.append(option)
            return
        if option == _LOAD:
            self._loads = True
            return
        if option not in _SETTINGS.keys() | _CONF | _KEPT.keys() | {_FILE}:
            raise self._wrong(f"{option} has no meaning for Spark inside a task", f"Remove {option}")
        if not has_value:
            if not self._left:
                raise self._wrong(f"{option} lacks its value", f"Append the value, and {_SHELL}")
            value = self._left.pop(0)
        self._take(option, value)

    def _take(self, option: str, value: str) -> None:
        if option in _CONF:
            name, found, setting = value.partition("=")
            if not found:
                raise self._wrong(f"{option} takes <name>=<value>", "Write the setting with its value")
            self._conf[trimmed(name)] = trimmed(setting)
        elif option == _FILE:
            self._file = Path(value)
        elif option in _KEPT:
            self._kept += [option, value]
        else:
            self._options[_SETTINGS[option]] = trimmed(value)

    def _end(self, word: str) -> None:
        if word != _SHELL:
            raise self._wrong(f"it names a program, {word!r}, where PySpark needs {_SHELL}", f"Write {_SHELL} instead")
        if self._left:
            raise self._wrong(f"arguments follow {_SHELL}, which Spark does not read", f"Write {_SHELL} last")

    def _wrong(self, what: str, step: str) -> PreflightFailed:
        return PreflightFailed(
            f"{VARIABLE}={shown(self._all)!r}: {what}, so Spark cannot start inside the task. {step}, or unset "
            f"{VARIABLE} and use the operator's spark="
        )


def shown(words: list[str]) -> str:
    """Arguments as a message may show them."""
    return " ".join(_SECRET_VALUE.sub(r"\1\2***", word) for word in words)


_SECRET_VALUE: Final = re.compile(rf"({SECRET_NAME.pattern})([^=\s]*=).*", re.DOTALL | re.IGNORECASE)
