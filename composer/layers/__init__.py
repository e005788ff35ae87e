"""The four memory layers: working, episodic, semantic and structured; how they are ranked, and the view of a busy
room."""
