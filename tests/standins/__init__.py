"""Stand-ins for services of others, which the tests drive: GitHub and the servers of models."""
