"""Commands that run and verify work."""
