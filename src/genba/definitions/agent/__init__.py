"""Agents: agent.json, its layers and its checks."""
