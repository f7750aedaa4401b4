"""From a window to a plan: cuts, proofs and splits."""
