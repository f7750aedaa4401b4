"""The user's settings of Spark, in one shape for spark-submit, Spark Connect and Spark inside the task.

The names are those of Airflow's Spark provider. Each stands for one of Spark's own settings, so every launcher passes
on the same names and values, never on a command line.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.spark.settings.properties import properties_text, trimmed
from airflow_provider_streams.spark.settings.setting_rules import WHERE_SPARK_IS, rule_against

SMALL_PLAN_BYTES: Final = 32 * 1024 * 1024
"""Plans of at most this many stored bytes are read by the job's own process."""

PARAMETERS: dict[str, str] = {
    "packages": "spark.jars.packages",
    "exclude_packages": "spark.jars.excludes",
    "repositories": "spark.jars.repositories",
    "jars": "spark.jars",
    "files": "spark.files",
    "py_files": "spark.submit.pyFiles",
    "archives": "spark.archives",
    "driver_class_path": "spark.driver.extraClassPath",
    "driver_memory": "spark.driver.memory",
    "executor_memory": "spark.executor.memory",
    "executor_cores": "spark.executor.cores",
    "total_executor_cores": "spark.cores.max",
    "num_executors": "spark.executor.instances",
    "name": "spark.app.name",
    "yarn_queue": "spark.yarn.queue",
    "principal": "spark.kerberos.principal",
    "keytab": "spark.kerberos.keytab",
}
"""The provider's parameter to Spark's setting. In addition, `conf` takes any of Spark's settings."""

JAVA_HOME: Final = "spark.streams.javaHome"
"""Our own: the Java of a JVM that starts on this machine; Spark itself keeps it and does nothing with it."""
_EVERY: Final = {**PARAMETERS, "java_home": JAVA_HOME}

SECRET_NAME: Final = re.compile(r"secret|password|token|access[.]?key|credential|passphrase", re.IGNORECASE)
"""Spark's own redaction, and a little more."""


@dataclass(frozen=True)
class SparkSettings:
    """Spark's settings by their own names. They may hold secrets, so they are not shown."""

    conf: Mapping[str, str] = field(default_factory=dict, repr=False)
    origins: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """Where each was read, for messages: a file and its line, or a variable."""

    @classmethod
    def of(cls, given: Mapping[str, Any] | None, origin: str = "the operator's spark=") -> Self:
        """From `{"conf": {..}, "driver_memory": "4g", ..}`. Blanks around names and values do not count.

        Args:
            given: the settings.
            origin: what holds them, for later messages.

        Raises:
            InvalidRequest: no mapping, an unknown name (with the nearest known one), or an invalid value.
        """
        if not isinstance(given or {}, Mapping):
            raise InvalidRequest(f"spark is a mapping like {{'driver_memory': '4g'}}, not a {type(given).__name__}")
        found: dict[str, str] = {}
        for name, value in (given or {}).items():
            if value is None:
                continue
            for setting, text in _conf(value) if name == "conf" else [(_setting(name), _text(name, value))]:
                if found.setdefault(setting, text) != text:
                    raise InvalidRequest(f"spark: {setting} is said twice, with different values")
                if rule := rule_against(setting, text):
                    raise InvalidRequest(f"spark: {rule.name}={text!r} cannot be set: {rule.why}")
        return cls(found, dict.fromkeys(found, origin))

    def over(self, other: SparkSettings) -> SparkSettings:
        """Both; of a setting that both have, this one counts."""
        return SparkSettings({**other.conf, **self.conf}, {**other.origins, **self.origins})

    def without(self, *names: str) -> SparkSettings:
        """The others."""
        return SparkSettings({name: value for name, value in self.conf.items() if name not in names}, self.origins)

    def origin(self, name: str) -> str:
        """Where a setting was read."""
        return self.origins.get(name, "the task's settings")

    def paths(self, name: str) -> tuple[str, ...]:
        """A setting that is a list between commas."""
        return tuple(part for part in (one.strip() for one in self.conf.get(name, "").split(",")) if part)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that must not be shown."""
        return tuple(value for name, value in self.conf.items() if value and SECRET_NAME.search(name))

    def write(self, file: Path) -> None:
        """As a properties file that its owner alone can read."""
        file.touch(mode=0o600)
        file.write_text(properties_text(self.conf), "utf-8")


def _setting(given: object) -> str:
    name = trimmed(str(given))
    if name in _EVERY:
        return _EVERY[name]
    if name == "deploy_mode":
        raise InvalidRequest(f"spark: 'deploy_mode' cannot be set: {WHERE_SPARK_IS['spark.submit.deployMode']}")
    known = ("conf", *_EVERY)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
    if name.startswith("spark."):
        hint = f"Spark's own settings belong in 'conf': {{'conf': {{{name!r}: ..}}}}"
    raise InvalidRequest(f"spark: there is no parameter {name!r}; {hint}")


def _conf(given: object) -> Iterator[tuple[str, str]]:
    if not isinstance(given, Mapping):
        raise InvalidRequest(f"spark: 'conf' is a mapping of Spark's settings, not {type(given).__name__}")
    for written, value in given.items():
        name = trimmed(str(written))
        if name in WHERE_SPARK_IS:
            raise InvalidRequest(f"spark: {name!r} cannot be set: {WHERE_SPARK_IS[name]}")
        if not re.fullmatch(r"spark\.[\w.$/*-]+", name):
            raise InvalidRequest(
                f"spark: {name!r} is none of Spark's settings, which begin with 'spark.'; Hadoop's are written "
                "'spark.hadoop.<name>'"
            )
        if value is not None:
            yield name, _text(name, value)


def _text(name: str, value: object) -> str:
    """A value as Spark reads it from its own files: without blanks around it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return trimmed(str(value))
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        return ",".join(map(trimmed, value))
    raise InvalidRequest(f"spark: {name} is a text, a number or a list of texts, not {type(value).__name__}")
