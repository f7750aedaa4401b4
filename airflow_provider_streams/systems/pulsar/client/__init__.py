"""Requests to a Pulsar cluster: REST admin API and binary protocol."""
