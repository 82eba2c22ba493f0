"""Agents that outlive a worker: each question is put by a supervisor of its own, which the worker only watches.

Everything between the two is in files, so that whoever comes after a worker that died can go on watching.
"""
