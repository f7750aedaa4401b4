"""Read pinned plans, land their rows, record what became of them."""
