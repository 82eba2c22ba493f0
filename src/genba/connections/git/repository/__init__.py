"""The user's repository: commands, layout, locks and objects."""
