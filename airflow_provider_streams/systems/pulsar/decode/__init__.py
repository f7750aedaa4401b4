"""Entries of a Pulsar topic to Arrow record batches, without a Python object per message.

`metadata` reads one entry's header, `decoder` takes entries and gives batches, `columns` names what can be asked for.
"""

from airflow_provider_streams.systems.pulsar.decode.columns import COLUMNS, DEFAULT_COLUMNS, arrow_schema
from airflow_provider_streams.systems.pulsar.decode.decoder import Decoder, Totals
from airflow_provider_streams.systems.pulsar.decode.metadata import EntryMetadata, parse_metadata

__all__ = ["COLUMNS", "DEFAULT_COLUMNS", "Decoder", "EntryMetadata", "Totals", "arrow_schema", "parse_metadata"]
