"""The Discord adapter."""
