"""Entries of a Pulsar topic to Arrow record batches, without a Python object per message."""
