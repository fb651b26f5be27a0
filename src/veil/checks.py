"""What breaks when a mechanism is wrong."""
