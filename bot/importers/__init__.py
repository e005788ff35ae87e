"""Histories that the platforms export, read and imported."""
