"""What the dashboard shows and starts."""
