"""The state-driven workflow: the agents of a project and those that come from outside."""
