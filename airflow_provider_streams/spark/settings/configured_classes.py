"""Classes of catalogs and extensions that Spark's settings name. They are in jars that users add."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CATALOG: Final = re.compile(r"spark\.sql\.catalog\.\w+")
_NOT_FOUND: Final = "ClassNotFoundException"
_EXTENSIONS: Final = "spark.sql.extensions"

ADD_JAR: Final = (
    "Name its package (group:artifact:version) or its jar in Spark's settings packages or jars: "
    "--spark packages=.., or spark={'packages': '..'}"
)


def configured_classes(conf: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The settings, each with a class that it names. Pure."""
    for name, value in conf.items():
        if _CATALOG.fullmatch(name) or name == _EXTENSIONS:
            for one in filter(None, map(str.strip, value.split(","))):
                yield name, one


def missing_classes(spark: SparkSession) -> list[str]:
    """A sentence on each class that a session's settings name and its JVM does not have.

    A session of Spark Connect tells of none.
    """
    context = getattr(spark, "_sc", None)
    if context is None:
        return []
    loader = context._jvm.java.lang.Thread.currentThread().getContextClassLoader()  # noqa: SLF001 - PySpark has no public name
    return [
        f"Spark has no class {one}, which the setting {name} names"
        for name, one in configured_classes(dict(context.getConf().getAll()))
        if not _has(loader, one)
    ]


def _has(loader: Any, name: str) -> bool:
    try:
        loader.loadClass(name)
    except Exception as error:
        if _NOT_FOUND not in f"{error}":  # py4j has one class for all of Java's errors
            raise
        return False
    return True
