"""The terminal: `nexus chat`, scripts, imports, and what an operator runs."""
