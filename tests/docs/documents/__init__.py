"""The documentation as data: its code blocks, links, manifests and policies."""
