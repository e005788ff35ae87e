"""Everything that arrives from a platform: messages, edits, deletions, membership and privacy changes."""
