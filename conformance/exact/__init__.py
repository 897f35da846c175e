"""The definitions, computed exactly: rational numbers where they suffice, 50 digits elsewhere. Shares no code with the package."""
