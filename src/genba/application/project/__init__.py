"""A project as the use cases take it, and what prepares, checks and tidies it."""
