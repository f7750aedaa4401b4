"""A third system, as another package would bring it: a folder is a stream, a numbered file in it an event."""
