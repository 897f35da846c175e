"""What a clinical reviewer and a decision maker ask."""
