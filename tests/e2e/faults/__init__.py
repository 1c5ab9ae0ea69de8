"""A storm of random kills, faults, edits and interruptions, with checks."""
