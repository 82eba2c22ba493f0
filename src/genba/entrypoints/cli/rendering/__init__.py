"""How values look on a terminal."""
