"""Maps leaving Python."""
