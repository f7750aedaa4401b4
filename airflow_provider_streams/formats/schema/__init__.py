"""From schemas to row types. Loads neither Arrow nor numpy."""
