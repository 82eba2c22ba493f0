"""The copy of a tracker, on both databases."""
