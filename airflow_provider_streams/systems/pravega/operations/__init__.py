"""What sensors, operators and hooks do with streams."""
