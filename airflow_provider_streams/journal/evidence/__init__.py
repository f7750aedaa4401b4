"""What was seen of a source, and when: cuts that were recorded, edges of windows, and tails."""
