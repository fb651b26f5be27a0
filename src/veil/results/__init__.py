"""What comes out for the analyst: estimates, distributions, means; each with its error."""
