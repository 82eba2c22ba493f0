"""Goals, test counts and verdicts."""
