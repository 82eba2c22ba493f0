"""The server for agents that ask what to do next."""
