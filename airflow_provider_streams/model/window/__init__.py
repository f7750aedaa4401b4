"""Spans of time: windows, how they tile time, which of them are covered."""
