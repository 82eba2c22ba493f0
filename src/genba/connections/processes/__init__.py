"""Processes: start, watch, limit and end."""
