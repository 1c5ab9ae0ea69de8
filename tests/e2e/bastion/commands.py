"""devctl's commands about a workspace, as lists of words."""

import re

from bastion.belongings import Person

# Commands that name no workspace.
NAMELESS = {
    "completion",
    "config-ssh",
    "create",
    "flavors",
    "help",
    "list",
    "manual",
    "whoami",
}


def reading(name: str, namespace: str) -> list[list[str]]:
    """Commands that an owner may give, and that change nothing."""
    hosts = [
        name,
        f"{name}.ws",
        f"0.{name}.ws",
        f"{name}.{namespace}",
        f"{name}.{namespace}.ws",
        f"0.{name}.{namespace}.ws",
    ]
    return [
        ["show", name],
        ["show", name, "-o", "json"],
        ["show", name, "-o", "yaml"],
        ["why", name],
        ["cost", name],
        *(["connect", host] for host in hosts),
    ]


def changing(name: str) -> list[list[str]]:
    """Commands by which an owner stops, starts and deletes a workspace."""
    return [
        ["stop", name, "--no-wait"],
        ["start", name, "--no-wait"],
        ["delete", name, "--home", "--yes", "--no-wait"],
    ]


def elsewhere(name: str) -> list[list[str]]:
    """Commands that need more than the bastion has, or a workspace that is planned to
    stop."""
    return [
        ["extend", name, "1h"],
        ["ssh", name, "--", "true"],
        ["ssh", name, "--replica", "0", "--start"],
        ["run", name, "true"],
        ["run", name, "--detach", "true"],
        ["jobs", name],
        ["logs", name],
        ["logs", name, "--events"],
        ["logs", name, "--setup"],
        ["cancel", name, "1"],
        ["monitor", name, "--once"],
        ["cp", f"{name}:x", "y"],
        ["port-forward", name, "8888"],
        ["jupyter", name, "--no-open"],
        ["code", name],
        ["jetbrains", name, "--no-open"],
        ["proxy", f"{name}.ws"],
        ["doctor", name],
        ["known-hosts", name],
        ["known-hosts", name, "--forget"],
    ]


def other_namespace(other: Person) -> list[list[str]]:
    """Commands that name the namespace of another person, or an address there."""
    name, namespace, address = other.workspace, other.namespace, other.address
    hosts = [
        f"{name}.{namespace}",
        f"{name}.{namespace}.ws",
        f"0.{name}.{namespace}.ws",
        f"{other.names['Pod']}.{namespace}",
        other.names["Pod"],
        address,
        f"{address}:22",
        f"{name}.{namespace}.svc.cluster.local",
        f"../{namespace}/{name}",
    ]
    of_workspaces = [*reading(name, namespace)[:5], *changing(name), *elsewhere(name)]
    return [
        *(["connect", host] for host in hosts),
        *(["-n", namespace, *words] for words in of_workspaces),
        ["list", "--namespace", namespace],
        ["list", "-n", namespace, "-o", "json"],
        ["list", "--all-namespaces"],
        ["list", "-A", "-o", "json"],
        ["cost", "--month", "-n", namespace],
        ["whoami", "-n", namespace],
        ["flavors", "-n", namespace],
        ["create", "crossed", "cpu-small", "--no-wait", "-n", namespace],
        ["create", name, "cpu-small", "--dry-run", "-n", namespace],
        ["proxy", f"{name}.{namespace}.ws"],
        ["proxy", f"{address}"],
    ]


def commands_of(help_: str) -> set[str]:
    """The commands in devctl's help."""
    (section,) = re.findall(r"Commands:\n(.*?)\n\n", help_, re.DOTALL)
    return set(re.findall(r"^  ([a-z-]+) ", section, re.MULTILINE))
