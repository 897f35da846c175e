"""The one tabular result: named columns of plain arrays."""
