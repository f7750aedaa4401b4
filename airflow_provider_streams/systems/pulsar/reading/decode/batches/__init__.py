"""Where the messages of Pulsar's batches start and end."""
