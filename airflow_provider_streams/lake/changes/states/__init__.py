"""What is known of the keys of a table, the latest state or all changes, and how rows and markers keep it."""
