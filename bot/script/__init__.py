"""Scripts: events as lines of JSON, which the console plays and the importers load."""
