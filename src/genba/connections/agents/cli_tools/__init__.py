"""Adapters for Claude Code, Codex and OpenCode."""
