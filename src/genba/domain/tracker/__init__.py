"""Issues, pull requests and the outbox."""
