"""Documents read as text, in a process of their own."""
