"""Errors that other papers and tools report, so that their numbers can be compared."""
