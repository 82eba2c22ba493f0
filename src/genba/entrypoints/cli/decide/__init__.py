"""Commands by which a person decides."""
