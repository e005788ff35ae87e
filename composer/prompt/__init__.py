"""The prompt: sections, token budget, images, and the explanation of a stored prompt."""
