"""The merge queue of each target branch."""
