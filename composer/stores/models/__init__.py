"""Models, embedders, tokenizers and tool servers."""
