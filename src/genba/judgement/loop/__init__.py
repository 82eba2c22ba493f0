"""Decisions of a loop: completion, transitions, budgets, closure."""
