"""Whether the connection's user may do what a reader does. Nothing is created or changed to find out."""

from __future__ import annotations

from airflow_provider_streams.doctor.finding import Finding, Notes
from airflow_provider_streams.errors import NotAuthorized, SourceNotFound, StreamsError
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.systems.diagnosis import Diagnosis, Grant


def check_grants(diagnosis: Diagnosis, source: Source) -> list[Finding]:
    """A finding for each action; of a source that does not exist only one."""
    notes = Notes("grants")
    try:
        grants = diagnosis.grants(source)
    except SourceNotFound as error:
        notes.error("source", str(error), _CREATE)
        return notes.findings
    except StreamsError as error:
        notes.error("source", str(error), "Let the user list the source's topics or streams, or name them one by one")
        return notes.findings
    for grant in grants:
        _check(notes, grant)
        if notes.failed("source"):
            break
    return notes.findings


def _check(notes: Notes, grant: Grant) -> None:
    try:
        says = grant.ask()
        if unseen := grant.unseen():
            notes.skipped(grant.action, f"{says}; {unseen}", f"Check that the user has {grant.needs}")
        else:
            notes.ok(grant.action, f"granted: {says}")
    except SourceNotFound as error:
        notes.error("source", str(error), _CREATE)
    except NotAuthorized as error:
        advice = f"Grant the user {grant.needs}"
        if grant.is_needed:
            notes.error(grant.action, str(error), advice)
        else:
            notes.warning(grant.action, f"only readers with a hold need it: {error}", advice)
    except StreamsError as error:
        notes.warning(grant.action, f"it could not be found out: {error}", f"Check that the user has {grant.needs}")


_CREATE = "Correct the name, or create it: a reader never does"
