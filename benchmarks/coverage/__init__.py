"""The coverage atlas, `python -m benchmarks.coverage`: how often statements of truecal hold in worlds whose truth is known."""
