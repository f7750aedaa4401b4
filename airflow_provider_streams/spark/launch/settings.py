"""The user's settings of Spark, in one shape for spark-submit, Spark Connect and Spark inside the task.

The names are those of Airflow's Spark provider. Each stands for one of Spark's own settings, so every launcher passes
on the same names and values, never on a command line.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from airflow_provider_streams.errors import InvalidRequest

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

DECIDED_ELSEWHERE = {
    "spark.master": "the connection's host and port say where Spark is",
    "spark.remote": "the connection's host and port say where Spark is",
    "spark.submit.deployMode": "the driver program runs next to the task (client mode)",
}

_SECRET = re.compile(r"(?i)secret|password|token|access[.]?key|credential|passphrase")
"""Spark's own redaction, and a little more."""


@dataclass(frozen=True)
class SparkSettings:
    """Spark's settings by their own names. They may hold secrets, so they are not shown."""

    conf: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, given: Mapping[str, Any] | None) -> Self:
        """From `{"conf": {..}, "driver_memory": "4g", ..}`.

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
                    raise InvalidRequest(f"spark: {setting} is said twice, in 'conf' and as a parameter of its own")
        return cls(found)

    def over(self, other: SparkSettings) -> SparkSettings:
        """Both; of a setting that both have, this one counts."""
        return SparkSettings({**other.conf, **self.conf})

    def without(self, *names: str) -> SparkSettings:
        """The others."""
        return SparkSettings({name: value for name, value in self.conf.items() if name not in names})

    def paths(self, name: str) -> tuple[str, ...]:
        """A setting that is a list between commas."""
        return tuple(part for part in (one.strip() for one in self.conf.get(name, "").split(",")) if part)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that must not be shown."""
        return tuple(value for name, value in self.conf.items() if _SECRET.search(name))

    def write(self, file: Path, defaults: Iterable[Path]) -> None:
        """As a properties file that its owner alone can read.

        Args:
            file: is made.
            defaults: `spark-defaults.conf`, if it exists: Spark reads it only if no other file is named, so its lines
                come first.
        """
        lines = [path.read_text() for path in defaults if path.is_file()][:1]
        lines += [f"{name}={_escaped(value)}" for name, value in self.conf.items()]
        file.touch(mode=0o600)
        file.write_text("\n".join(lines) + "\n")


def defaults_files(*homes: Path | str | None) -> list[Path]:
    """Where `spark-defaults.conf` may be, as Spark looks for it; the first one that exists counts."""
    given = os.environ.get("SPARK_CONF_DIR")
    folders = (
        [Path(given)] if given else [Path(home) / "conf" for home in (os.environ.get("SPARK_HOME"), *homes) if home]
    )
    return [folder / "spark-defaults.conf" for folder in folders]


def _setting(name: str) -> str:
    if name in _EVERY:
        return _EVERY[name]
    if name == "deploy_mode":
        raise InvalidRequest(f"spark: 'deploy_mode' cannot be set: {DECIDED_ELSEWHERE['spark.submit.deployMode']}")
    known = ("conf", *_EVERY)
    near = difflib.get_close_matches(str(name), known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
    if str(name).startswith("spark."):
        hint = f"Spark's own settings belong in 'conf': {{'conf': {{{name!r}: ..}}}}"
    raise InvalidRequest(f"spark: there is no parameter {name!r}; {hint}")


def _conf(given: object) -> list[tuple[str, str]]:
    if not isinstance(given, Mapping):
        raise InvalidRequest(f"spark: 'conf' is a mapping of Spark's settings, not {type(given).__name__}")
    for name in given:
        if name in DECIDED_ELSEWHERE:
            raise InvalidRequest(f"spark: {name!r} cannot be set: {DECIDED_ELSEWHERE[name]}")
        if not str(name).startswith("spark.") or not re.fullmatch(r"[\w.$/*-]+", str(name)):
            raise InvalidRequest(
                f"spark: {name!r} is none of Spark's settings, which begin with 'spark.'; Hadoop's are written "
                "'spark.hadoop.<name>'"
            )
    return [(name, _text(name, value)) for name, value in given.items() if value is not None]


def _text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        return ",".join(value)
    raise InvalidRequest(f"spark: {name} is a text, a number or a list of texts, not {type(value).__name__}")


def _escaped(value: str) -> str:
    """As `java.util.Properties` reads it."""
    text = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return f"\\{text}" if text[:1] in (" ", "=", ":") else text
