"""Who is better: models in pairs, and estimators against each other."""
