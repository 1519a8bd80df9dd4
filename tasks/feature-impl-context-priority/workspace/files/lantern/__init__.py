"""A terminal agent."""
