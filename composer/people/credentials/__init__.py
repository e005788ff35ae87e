"""Credentials: what opens a person's memory from outside a chat, and whom each one stands for."""
