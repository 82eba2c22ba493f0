"""One agent, one loop: resolve, ask, observe, judge; then finalize.

Law: async; reaches the outside through ports only. Needs no database.
"""
