"""Billing providers."""
