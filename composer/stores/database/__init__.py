"""PostgreSQL, and the cache of the working layer in Redis or Valkey."""
