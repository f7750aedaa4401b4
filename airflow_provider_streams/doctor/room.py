"""How much room a disk has, compared with what is written to it."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_streams.doctor.finding import Notes


@dataclass(frozen=True, slots=True)
class Room:
    """What is needed of a disk."""

    none: int
    """With fewer free bytes, it is full."""
    little: int
    """With fewer free bytes, it may soon be full."""
    advice: str
    """The next step if there is too little."""

    def judge(self, notes: Notes, place: str, free: int) -> None:
        """Note whether the file system of a place has enough. Pure."""
        says = f"{free:,} bytes are free on the file system of {place}"
        if free < self.none:
            notes.error("room", f"only {says}, and at least {self.none:,} are needed", self.advice)
        elif free < self.little:
            notes.warning("room", says, self.advice)
        else:
            notes.ok("room", says)
