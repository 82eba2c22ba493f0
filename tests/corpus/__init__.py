"""The corpus: agents that lie and agents that work, each run through the real door. `docs/lying-agents.md` lists it."""
