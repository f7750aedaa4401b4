"""What a command leaves open of a set-up, taken from the reader's windows so far, as `plan` and `read` take it."""

from __future__ import annotations

from dataclasses import replace

from airflow_provider_streams.connections.journal import open_journal
from airflow_provider_streams.connections.table_properties import properties_of
from airflow_provider_streams.doctor.journal import inspected
from airflow_provider_streams.doctor.setup import DEFAULT_READER, Setup
from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.lake import connections
from airflow_provider_streams.lake.registry import writer_of
from airflow_provider_streams.model.sinks.landing import TableState
from airflow_provider_streams.model.sinks.placeholders import is_fan_out
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.systems.source_json import decoded_source, payloads_of
from airflow_provider_streams.windows.claim.landing_defaults import basis_of, stored_landing


def with_known(setup: Setup, *, takes_slack: bool) -> Setup:
    """The set-up with what the journal knows of its reader: of the one it names, or of the one that owns its table.

    The set-up is `decoding_unknown` if it still does not say how payloads are decoded. Nothing is made or migrated.

    Args:
        setup: as the command's arguments say.
        takes_slack: whether they leave the slack open.

    Raises:
        StreamsError: what the journal keeps of the reader cannot be used.
    """
    if setup.source is None:
        return setup
    found = replace(setup, decoding_unknown=not any(payloads_of(setup.source).values()))
    try:
        reader = setup.reader or _owner_of(setup, setup.source) or DEFAULT_READER
    except StreamsError:
        return found  # the area sink reads the table again and says what is wrong
    try:
        journal = open_journal() if inspected().state == "ready" else None
    except StreamsError:
        return found  # the area journal looks at it again and says what is wrong
    if journal is None:
        return found
    with journal:
        return _completed(found, setup.source, journal, reader, takes_slack=takes_slack)


def _owner_of(setup: Setup, source: Source) -> str:
    """The reader of this source that owns the table; empty: there is none."""
    if setup.sink is None or is_fan_out(setup.sink):
        return ""
    connections.resolve_by(properties_of)
    state = writer_of(setup.sink).read_state(setup.sink)
    return state.mark.reader if isinstance(state, TableState) and state.mark.source == source.key else ""


def _completed(setup: Setup, source: Source, journal: Journal, reader: str, *, takes_slack: bool) -> Setup:
    kept = stored_landing(journal, source.key, reader)
    if takes_slack:
        basis = basis_of(journal, source, reader, None, {})
        setup = replace(setup, slack=getattr(basis, "slack", setup.slack))
    if kept is None:
        return setup
    if setup.sink is None and setup.reader is not None:
        setup = replace(setup, sink=kept.sink)
    if setup.sink is not None and kept.sink is not None and setup.sink.asset_uri == kept.sink.asset_uri:
        setup = replace(setup, transform=kept.transform, columns=kept.columns)
    if not setup.decoding_unknown:
        return setup
    payloads = {name: one for name, one in (("value", kept.value), ("key", kept.key)) if one is not None}
    return replace(setup, source=decoded_source(source, payloads), decoding_unknown=False)
