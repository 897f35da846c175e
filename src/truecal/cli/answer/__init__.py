"""How a verb answers: text, JSON and the formats of CI, to the terminal or whole into a file."""
