"""What the dashboard shows, and what its buttons start and stop."""
