"""Looks at the last events of a source, and follows it; holds nothing, consumes nothing, records nothing."""
