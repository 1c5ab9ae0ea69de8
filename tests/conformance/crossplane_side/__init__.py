"""What Crossplane does around a function, and the function itself as a process."""
