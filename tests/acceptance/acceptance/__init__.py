"""Asks a real AWS account what AWS's documents do not say."""
