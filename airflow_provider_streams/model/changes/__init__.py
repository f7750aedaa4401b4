"""How change rows are applied to a table: declarations only."""
