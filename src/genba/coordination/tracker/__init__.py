"""Keeping tasks and a tracker in line."""
