"""Secrets among a Data Source's options: Spark writes options into plans, and plans into logs, pages and event logs.

In a classic Spark an option's name decides whether its value is hidden there; a Spark Connect server hides what a
pattern of the session matches, and nothing by default. So secrets get a form that such a pattern finds, however long
they are and whatever they hold. It is a mark, and no encryption.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REDACTION = "spark.sql.redaction.string.regex"
_MARK = "streams-secret:"
PATTERN = _MARK + r"[\w=-]*"
"""What the session's Spark must hide."""


def veiled(secret: str) -> str:
    """The secret as `PATTERN` finds it."""
    return _MARK + base64.urlsafe_b64encode(secret.encode()).decode()


def unveiled(value: str) -> str:
    """The reverse of `veiled`; another text is left as it is."""
    if not value.startswith(_MARK):
        return value
    return base64.urlsafe_b64decode(value.removeprefix(_MARK)).decode()


def hide(spark: SparkSession) -> None:
    """Let the session's Spark hide veiled secrets, besides what it hides already."""
    given = spark.conf.get(REDACTION, "") or ""
    if PATTERN not in given:
        spark.conf.set(REDACTION, f"(?:{given})|{PATTERN}" if given else PATTERN)
