"""A storm: kills, faults, edits and interruptions at random, and what is left of it."""
