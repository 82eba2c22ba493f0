"""The MCP door: a call comes in, one call of the service goes out, and what it came to is told in a shape."""
