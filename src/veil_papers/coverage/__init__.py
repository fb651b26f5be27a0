"""Whether every stated error holds: coverage of intervals and bands, errors of tests, over every kind of result."""
