"""Studies: many models, many datasets, many metrics, from one YAML file."""
