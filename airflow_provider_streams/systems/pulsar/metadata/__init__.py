"""What a Pulsar cluster stores about topics: names, schemas, ledgers."""
