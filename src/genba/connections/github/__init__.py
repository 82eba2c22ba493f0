"""GitHub: its issues, boards and pull requests, by its REST and GraphQL interfaces."""
