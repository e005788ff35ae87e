"""What the chat platform adapters have in common: events, the inbox, retries, background tasks, files."""
