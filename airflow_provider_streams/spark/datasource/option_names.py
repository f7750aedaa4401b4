"""What errors say of operators' arguments, as the options of `spark.read.format(..)`."""

from __future__ import annotations

import re
from typing import Final

from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.model.schema.payload_options import (
    ARGUMENT_IN_TEXT,
    FIRST_IN_TEXT,
    PAYLOAD_IN_TEXT,
    PAYLOAD_PARTS,
)
from airflow_provider_streams.spark.error_transport import one_line, rebuild

_ASIDE: Final = "on_decode_error='quarantine' (in a ParquetSink)"
_IN_SPARK: Final = "on_decode_error='quarantine' and quarantine_path='..'"


def for_options(error: StreamsError) -> StreamsError:
    """The same error on one line, its advice in the words of options: `value=Bytes()` is `value_format='bytes'`."""
    text = PAYLOAD_IN_TEXT.sub(_payload, str(one_line(error)).replace(_ASIDE, _IN_SPARK))
    return rebuild(type(error).__name__, text)


def _payload(found: re.Match[str]) -> str:
    of, kind, arguments = found.groups()
    options = [("format", f"'{kind.lower()}'")]
    if schema := FIRST_IN_TEXT.match(arguments):
        options.append(("schema", f"'{schema[1]}'"))
    options += [(name, value) for name, value in ARGUMENT_IN_TEXT.findall(arguments) if name in PAYLOAD_PARTS]
    return ", ".join(f"{of}_{name}={'true' if value == 'True' else value}" for name, value in options)
