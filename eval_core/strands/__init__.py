"""Strands of evidence: what is recorded of a run, what a difference between two sides means, and its words."""
