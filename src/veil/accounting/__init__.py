"""What a shuffle of reports is worth: bounds on the central guarantee."""
