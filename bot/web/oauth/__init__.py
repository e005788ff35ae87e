"""Signing in AI tools by OAuth 2.1: discovery, registration, consent and tokens, for `/mcp` alone.

Importing `handlers` loads the SDK of MCP, which takes a second: `server` does that when it is needed.
"""
