"""The record of a run, one JSON event per line."""
