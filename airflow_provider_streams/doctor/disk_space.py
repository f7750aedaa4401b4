"""How much space is free on a disk, compared with what is written to it."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_streams.doctor.finding import Notes


@dataclass(frozen=True, slots=True)
class SpaceNeed:
    """What is needed of a disk."""

    error_below: int
    """With fewer free bytes, it is an error."""
    warning_below: int
    """With fewer free bytes, it is a warning."""
    advice: str
    """The next step if there is too little."""

    def judge(self, notes: Notes, place: str, free: int) -> None:
        """Note whether the file system of a place has enough. Pure."""
        says = f"{free:,} bytes are free on the file system of {place}"
        if free < self.error_below:
            notes.error("free space", f"only {says}, and at least {self.error_below:,} are needed", self.advice)
        elif free < self.warning_below:
            notes.warning("free space", says, self.advice)
        else:
            notes.ok("free space", says)
