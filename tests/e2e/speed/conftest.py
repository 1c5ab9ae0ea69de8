"""The platform and the owners of the suite `devctl`."""

from devctl.conftest import (
    agent_url,
    alice,
    booting_policy,
    flavors,
    image,
    keys,
    new_user,
    platform_policy,
)

# Fixtures of other suites.
__all__ = [
    "agent_url",
    "alice",
    "booting_policy",
    "flavors",
    "image",
    "keys",
    "new_user",
    "platform_policy",
]
