"""Summaries of threads, sessions, days and weeks, and compaction of a conversation view."""
