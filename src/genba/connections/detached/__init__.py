"""Agents that outlive a worker: each question is put by a supervisor of its own, which the worker only watches.

Everything between the two is in files, so that the next worker can go on watching after one that died.
"""
