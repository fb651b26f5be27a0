"""Health, logs and metrics."""
