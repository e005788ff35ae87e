"""Who may act: what a person is to a thing, and the one table of acts."""
