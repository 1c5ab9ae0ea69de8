"""Crossplane's part of function calls, and the function as a process."""
