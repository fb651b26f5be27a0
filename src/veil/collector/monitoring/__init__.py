"""The state of a running collector: `health`, `logs` and `metrics`."""
