"""The tracker of a project: GitHub, its boards and its outbox."""
