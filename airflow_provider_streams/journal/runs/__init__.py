"""Runs of windows: how a try begins and ends, and what state it leaves its window in."""
