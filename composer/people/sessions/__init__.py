"""What people do with their sessions over the API: open them, read them, and have them forgotten."""
