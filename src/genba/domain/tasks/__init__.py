"""Tasks and their statuses."""
