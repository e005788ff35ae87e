"""How many ideas a newcomer has to hold: `make house` counts them, and says what grew since 3f6bbc2b."""
