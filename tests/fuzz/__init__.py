"""Unexpected input: valid files and streams that are spoilt step by step, and bytes that were never valid.

The law of every target: an answer or an error of the house, within its time, and nothing else. `make test` plays a
small share of each, always the same; `make fuzz` plays for MINUTES, from a seed that it prints.
"""
