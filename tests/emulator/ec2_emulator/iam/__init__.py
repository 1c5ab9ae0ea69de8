"""IAM: what a caller with a policy may do."""

from .policies import InvalidPolicy, Policies

__all__ = ["InvalidPolicy", "Policies"]
