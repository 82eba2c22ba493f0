"""The orchestrator, and the sessions that it starts."""
