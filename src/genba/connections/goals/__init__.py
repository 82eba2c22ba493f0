"""Checking goals: commands, services, files, and what came out."""
