"""Projects: who makes, renames and deletes them, and who is in them, for the commands and the API alike."""
