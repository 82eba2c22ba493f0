"""Channels that tell a person of a decision."""
