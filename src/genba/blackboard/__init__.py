"""The shared state in SQL: tasks, sessions, messages, artifacts, goals, results, events.

Law: one gateway changes a status. Only `coordination`, `wiring` and the doors import this room.
"""
