"""A GitHub of our own, for tests: its shapes are held to GitHub's own schemas."""
