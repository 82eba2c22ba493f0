"""The sandbox around an instance, one module per kind."""
