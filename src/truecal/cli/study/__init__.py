"""`truecal study` and its verbs."""
