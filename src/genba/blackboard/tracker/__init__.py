"""The copy of a tracker, and the outbox of changes to it."""
