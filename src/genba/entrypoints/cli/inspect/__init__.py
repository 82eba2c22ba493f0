"""Commands that show the project."""
