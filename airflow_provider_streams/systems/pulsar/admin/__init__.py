"""Pulsar's REST admin API: calls as data (`requests`), answers as values (`answers`), two thin clients (`client`)."""
