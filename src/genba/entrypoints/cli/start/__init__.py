"""Commands for the first hour."""
