"""JSON objects to columns: blocks by Arrow's reader, what it cannot do value by value. Start at `reader.py`."""
