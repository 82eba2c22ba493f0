"""Worktrees that an agent can write, read without git."""
