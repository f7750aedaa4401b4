"""Keeps Py4J's messages on a dead JVM out of the log: the caller of that JVM gets the error.

Py4J logs each call without an answer, with all errors before it. To log a Java error it asks the JVM for its text,
which has no answer either and is logged as well, and so on: a megabyte for one task. It also logs in destructors and in
threads of its own. If the interpreter ends while one of them logs, the destructors wait for the log's lock for ever,
and the process never ends.
"""

from __future__ import annotations

import logging
from pathlib import Path


def silence_py4j() -> None:
    """From now on, in this process; a level that was set for Py4J is left as it is."""
    logger = logging.getLogger("py4j")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.WARNING)
    logging.getLogger().addFilter(_is_not_of_py4j)  # it says part of this through the root logger


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"
