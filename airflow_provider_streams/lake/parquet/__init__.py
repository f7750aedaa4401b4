"""A folder that is a table: one file system's names are its commits."""
