"""Private repositories of sandboxed sessions, and what is taken in from them."""
