"""Change rows as the state of a table: pure functions of Arrow tables. The engines are in the formats' folders."""
