"""How far an estimate from a sketch can be from that of all rows."""
