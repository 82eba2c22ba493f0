"""Gates: the ways out of the walls, each with a handler on the host that decides and writes down what passed."""
