"""The walls around an instance, one module per kind."""
