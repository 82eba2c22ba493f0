"""The MCP server: each tool call makes one call of the service and returns a typed result."""
