"""Agents that outlive their worker."""
