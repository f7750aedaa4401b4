"""Pulsar's REST admin API: calls as data (`requests`), answers as values (`responses`), two thin clients (`client`)."""
