"""Entries of a Pulsar topic to Arrow record batches, without a Python object per message.

`metadata` reads one entry's header, `decoder` takes entries and gives batches, `columns` names what can be asked for.
"""
