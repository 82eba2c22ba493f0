"""Durable workflows on DBOS, and what keeps them alive."""
