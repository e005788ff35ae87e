"""What the chat platform adapters have in common."""
