"""Pure functions over text: index terms, sentences, dates."""
