"""Commands for GitHub."""
