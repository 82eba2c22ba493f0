"""Many agents: orchestrator, durable runs, merge queue, review, escalation, facilitator.

Law: acts through ports, and never asks a model to schedule, watch or wait.
"""
