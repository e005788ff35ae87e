"""The schema, its migrations, and every statement that Nexus runs, each under a name."""
