"""Sandboxes and environments of agents and goals."""
