"""Goals that need only git facts, and what judges the work."""
