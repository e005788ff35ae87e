"""The core: decides what an agent may know, and builds its prompts."""

__version__ = "0.1.0"
