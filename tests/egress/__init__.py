"""The gates, with real sockets on both sides."""
