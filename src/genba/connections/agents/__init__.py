"""Adapters: translators between Genba and one kind of agent."""
