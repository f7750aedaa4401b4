"""Pulsar's message headers, one by one and in bulk."""
