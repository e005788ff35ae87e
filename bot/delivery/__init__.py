"""Delivers answers and notices to chat platforms, and retracts them."""
