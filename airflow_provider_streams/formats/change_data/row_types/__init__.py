"""The types of rows, as schemas, registries and messages tell them. No Arrow, no numpy: planning uses them."""
