"""Git: the repository, working trees, merges and rescue refs.

Law: never run git with its directory or its repository inside a place that an agent can write.
"""
