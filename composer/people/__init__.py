"""What a person does with what is stored about them: see it, catch up on it, take it with them, set it and have it
erased."""
