"""Entries and teams: what people and their tools write, read and share over the API."""
