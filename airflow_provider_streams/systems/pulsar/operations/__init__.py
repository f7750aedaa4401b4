"""What sensors, operators and hooks do with topics and subscriptions."""
