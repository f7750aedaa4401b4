"""Delta tables by delta-rs: one commit to a log replaces a window."""
