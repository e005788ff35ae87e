"""The web port: liveness, readiness and metrics."""
