"""Programs of others that speak MCP, run against the real web port: the protocol's conformance tests, the inspector."""
