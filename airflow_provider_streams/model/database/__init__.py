"""Addresses of databases: what SQL drivers make of them, so that no password travels without TLS."""
