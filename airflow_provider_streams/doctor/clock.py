"""How far this machine's clock is from the server's, compared with the slack of windows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from airflow_provider_streams.doctor.finding import Finding, Notes
from airflow_provider_streams.errors import StreamsError
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.systems.diagnosis import Diagnosis, ServerTime

_CHECK = "difference"
_SYNCHRONIZE = (
    "Synchronize this machine and the servers by NTP, for example with chrony. A larger slack helps meanwhile, if it "
    "exceeds the difference"
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A server's time, and this machine's just before and after it was asked."""

    server: ServerTime
    before: datetime
    after: datetime

    @property
    def least(self) -> timedelta:
        """How far apart the clocks are at least, whatever the request's way took."""
        ahead = self.before - self.server.time - timedelta(seconds=self.server.resolution_seconds)
        late = self.server.time - self.after
        return max(ahead, late, timedelta(0))

    @property
    def uncertainty(self) -> timedelta:
        """How exactly the difference is known."""
        return self.after - self.before + timedelta(seconds=self.server.resolution_seconds)

    @property
    def is_ahead(self) -> bool:
        """Whether this machine's clock is ahead of the server's."""
        return self.before > self.server.time


def check_clock(diagnosis: Diagnosis, source: Source | None, slack: timedelta) -> list[Finding]:
    """One finding."""
    notes = Notes("clock")
    before = now()
    try:
        told = diagnosis.server_time(source)
    except StreamsError as error:
        notes.warning(_CHECK, f"the server's time could not be asked for: {error}", "See the connection above")
        return notes.findings
    after = now()
    if told is None:
        notes.skipped(
            _CHECK,
            "no service of the connection says what time it is",
            "Compare the clocks by hand, with `date -u` on both machines",
        )
    else:
        judge(notes, Comparison(told, before, after), slack)
    return notes.findings


def judge(notes: Notes, compared: Comparison, slack: timedelta) -> None:
    """Whether the difference is within the slack; half of it is a warning. Pure."""
    least, where = compared.least, compared.server.where
    known = f"known to {_shown(compared.uncertainty)}, slack {_shown(slack)}"
    if not least:
        notes.ok(_CHECK, f"none that can be seen between this machine and {where} ({known})")
        return
    order = "later" if compared.is_ahead else "earlier"
    says = f"this machine's clock shows a time {_shown(least)} {order} than {where} ({known})"
    if least > slack:
        notes.error(_CHECK, f"{says}: windows end too early or too late, and events may be missed", _SYNCHRONIZE)
    elif least > slack / 2:
        notes.warning(_CHECK, says, _SYNCHRONIZE)
    else:
        notes.ok(_CHECK, says)


def now() -> datetime:
    """This machine's time."""
    return datetime.now(UTC)


def _shown(span: timedelta) -> str:
    return f"{span.total_seconds():.1f} s"
