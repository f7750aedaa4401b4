"""Checks of a set-up before a reader runs: what works, what does not, and the next step."""
