"""A project: its context, first settings, checks and clean-up."""
