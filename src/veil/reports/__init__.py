"""What a report consists of, and what is counted."""
