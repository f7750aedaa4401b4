"""What clients of REST services share: calls as data, one exchange for both edges, refusals as our errors."""
