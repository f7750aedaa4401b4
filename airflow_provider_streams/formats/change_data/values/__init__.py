"""Values as messages have them, to columns of exactly the same values."""
