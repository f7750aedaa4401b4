"""What is read: sources, positions, cuts, holds."""
