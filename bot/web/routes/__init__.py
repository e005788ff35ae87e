"""The routes of the web port, a file for each noun. They parse, call a use case of composer, and answer."""
