"""Pictures of the laboratory."""
