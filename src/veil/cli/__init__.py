"""The command line: thin, it parses, calls and prints. `main` holds the commands, the rest is what they share."""
