"""Tasks, their goals and relations, and the one gateway that changes a status."""
