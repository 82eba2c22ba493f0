"""`.agent/` and `.genba/` files become frozen values, validated once.

Law: files are read at start-up only; nothing is read again in mid-run, and nothing from an agent's own working tree.
"""
