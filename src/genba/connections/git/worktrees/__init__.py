"""Worktrees: made, watched, rescued and removed."""
