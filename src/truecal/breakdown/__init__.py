"""What a user relies on, in tables: words for confidence (Likert), subgroups, and what happened beyond the top class."""
