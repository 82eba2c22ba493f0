"""Commands that administer agents, settings and data."""
