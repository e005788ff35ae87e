"""What is remembered: indexing, extraction, consolidation, explicit writes and forgetting."""
