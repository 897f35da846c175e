"""What a study computes: names of metrics, and their numbers."""
