"""The schema, as numbered migrations, and every statement that Nexus runs, each under a name."""
