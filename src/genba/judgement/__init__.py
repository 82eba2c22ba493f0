"""Judgement: completion, transitions, budgets, retries, closure.

Law: pure functions over frozen values. No I/O, no clock, no side effect; the result goes back to the caller, who acts.
"""
