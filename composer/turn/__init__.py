"""One answer from start to end: the worker takes a turn, composes its prompt, asks the model and delivers the reply."""
