"""The coverage atlas: every statement that truecal makes, tried in worlds whose truth is known (`python -m benchmarks.coverage`)."""
