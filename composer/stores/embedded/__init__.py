"""PostgreSQL and Valkey servers of our own, started from wheels."""
