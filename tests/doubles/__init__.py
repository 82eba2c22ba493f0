"""Doubles and suites of ports that only Genba itself implements."""
