"""The state of every issue, and the next command."""
