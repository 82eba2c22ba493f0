"""Steps: the registry, its graph, templates and variables."""
