"""Agents that ask: credentials, connections, messages and subtasks."""
