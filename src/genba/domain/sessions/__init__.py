"""Sessions: their state, replies, evidence and sandbox."""
