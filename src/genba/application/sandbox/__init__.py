"""The environments that agents and goals run in."""
