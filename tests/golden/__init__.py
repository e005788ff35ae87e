"""Golden traces: events in; rows, prompts, posts and HTTP answers out, to compare two states of the code."""
