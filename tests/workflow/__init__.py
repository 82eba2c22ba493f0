"""The tools of the state-driven workflow, on real databases."""
