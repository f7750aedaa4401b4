"""Payloads of different schema versions as the plan's columns."""
