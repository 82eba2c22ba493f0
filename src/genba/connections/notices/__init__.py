"""Ways to tell a person that something waits for them. A notice goes out; nothing that comes back is believed."""
