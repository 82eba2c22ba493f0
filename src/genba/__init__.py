"""Genba runs coding agents on a project's issues and believes only what it can see in git."""

__version__ = "0.1.0"
