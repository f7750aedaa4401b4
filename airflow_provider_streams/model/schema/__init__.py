"""Types of columns, and what payloads become."""
