"""The gateway: what people's tools ask models for passes through it, with the memory that they may read."""
