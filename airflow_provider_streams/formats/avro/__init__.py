"""Avro: all records of a block side by side, or one by one where a type holds itself."""
