"""Protobuf messages to columns, by the official runtime. Start at `reader.py`."""
