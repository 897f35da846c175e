"""Maps of one score, lifted to any number of classes."""
