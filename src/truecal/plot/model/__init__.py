"""Pictures of one model."""
