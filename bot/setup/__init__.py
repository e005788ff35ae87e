"""`nexus setup`: asks for what Nexus needs, checks it, and writes the settings."""
