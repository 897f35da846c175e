"""Hostile runs where failures are silent: files x options x engines, damaged files, command lines, kills, races, full disks."""
