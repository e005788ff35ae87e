"""Scheduled jobs: when each is due, what it does, and what runs them."""
