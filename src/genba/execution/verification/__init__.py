"""Verification of a commit."""
