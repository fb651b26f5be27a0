"""Results for the terminal, notebooks and files."""
