"""What a store of results says."""
