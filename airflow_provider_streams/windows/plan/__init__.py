"""From a window to a pinned plan."""
