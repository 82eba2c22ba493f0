"""The next action of an agent that asks."""
