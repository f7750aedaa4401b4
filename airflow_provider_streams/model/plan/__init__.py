"""A window resolved to positions, and the proof that they were read."""
