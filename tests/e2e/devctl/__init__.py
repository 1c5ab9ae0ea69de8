"""devctl against a real cluster, as the owner of the workspaces."""
