"""Maps of the form softmax(W z + b) and mixtures of them: they read all classes at once."""
