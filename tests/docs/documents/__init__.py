"""Reads the documentation's code blocks, links, manifests and policies."""
