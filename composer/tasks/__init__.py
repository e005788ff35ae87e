"""What the tasks of one process share, and how they take turns."""
