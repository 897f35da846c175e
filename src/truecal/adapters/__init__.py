"""The calibration error inside other tools: evaluation harnesses, experiment trackers, test runners. Each file is one tool.

They use the library as its users do. Nothing here is imported by truecal itself, and each file imports its tool on use.
"""
