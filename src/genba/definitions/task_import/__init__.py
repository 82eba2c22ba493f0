"""Tasks that were kept by another tool, read to be imported. The sources are only read."""
