"""The command line: verbs only, no statistics."""
