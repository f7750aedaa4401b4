"""Pravega's Schema Registry: its REST service, and what its schemas mean for payloads."""
