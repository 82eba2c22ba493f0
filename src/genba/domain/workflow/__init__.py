"""Actions of agents that ask what to do next."""
