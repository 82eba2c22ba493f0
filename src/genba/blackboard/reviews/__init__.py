"""Reviews, and the sessions that make them."""
