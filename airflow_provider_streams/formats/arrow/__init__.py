"""Arrow arrays and types, made of buffers."""
