"""The web port: one app for the API, Slack's events, liveness, readiness and metrics."""
