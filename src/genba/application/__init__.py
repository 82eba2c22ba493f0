"""Use cases that the entry points share. Each reaches the outside through ports that the wiring gives it."""
