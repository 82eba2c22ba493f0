"""Bounded queries for those who only watch."""
