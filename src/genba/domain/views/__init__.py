"""What a dashboard shows, as values."""
