"""The story of one answer: the worker takes a turn, composes its prompt, asks the model and delivers the reply."""
