"""Verification, decisions, and what makes a task done."""
