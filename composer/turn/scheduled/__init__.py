"""What agents post of themselves at a time that people set: reminders and digests."""
