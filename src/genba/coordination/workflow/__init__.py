"""The state-driven workflow: sessions that ask, tools that they may call, and the one next action."""
