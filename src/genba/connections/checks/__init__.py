"""Checks that must be run in a working tree."""
