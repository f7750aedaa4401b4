"""Hides secrets among a Data Source's options: Spark writes options into plans, logs, web pages and event logs.

Classic Spark hides a value by its option's name. A Spark Connect server hides what a pattern of the session matches,
and nothing by default. So secrets get a form that such a pattern finds. This is a mark, and no encryption.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REDACTION = "spark.sql.redaction.string.regex"
_MARK = "streams-secret:"
PATTERN = _MARK + r"[\w=-]*"
"""Matches masked secrets, which Spark must hide."""


def mask_secret(secret: str) -> str:
    """The secret in a form that `PATTERN` finds."""
    return _MARK + base64.urlsafe_b64encode(secret.encode()).decode()


def unmask_secret(value: str) -> str:
    """The reverse of `mask_secret`; other texts stay as they are."""
    if not value.startswith(_MARK):
        return value
    return base64.urlsafe_b64decode(value.removeprefix(_MARK)).decode()


def hide(spark: SparkSession) -> None:
    """Let the session's Spark hide masked secrets, in addition to what it hides already."""
    given = spark.conf.get(REDACTION, "") or ""
    if PATTERN not in given:
        spark.conf.set(REDACTION, f"(?:{given})|{PATTERN}" if given else PATTERN)
