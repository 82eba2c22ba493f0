"""Traces and metrics for an OpenTelemetry collector, made of the events of runs.

Law: it listens and nothing more. It never stands in the way of a run, whatever becomes of the collector, and what
people and agents say stays here unless the project says otherwise. Only the wiring imports it.
"""
