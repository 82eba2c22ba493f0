"""Merging, fast-forwarding and sharing branches."""
