"""One person's device: it checks the promise, pays for it and randomizes; nothing here knows the collector."""
