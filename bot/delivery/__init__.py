"""Deliver answers to a chat platform: streaming, splitting, privacy notices, retraction."""
