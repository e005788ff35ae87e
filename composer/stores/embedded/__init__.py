"""Embedded PostgreSQL and Valkey servers, started from wheels."""
