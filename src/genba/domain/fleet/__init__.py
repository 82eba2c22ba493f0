"""Fleets: sessions, the merge queue, notifications and progress."""
