"""Pulsar's binary protocol, which needs the extra `pulsar`."""

from airflow_provider_streams.model.optional_dependencies import importing

with importing("pulsar"):
    import google.protobuf  # noqa: F401 - the commands are generated for it
