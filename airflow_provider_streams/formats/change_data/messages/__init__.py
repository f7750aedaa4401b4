"""Messages of each layout to columns, before anything is known of changes."""
