"""The OpenAI-compatible gateway: requests of people's tools are passed on to a model's server."""
