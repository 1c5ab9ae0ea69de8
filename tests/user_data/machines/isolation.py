"""Commands whose processes and mounts end when this process does, however it ends."""


def isolated(*namespaces: str) -> list[str]:
    """The words to put before a command.

    The kernel ends `unshare` when its parent dies, then process 1 of the new PID
    namespace, then everything else in it; the mounts go with the last process.
    """
    flags = [f"--{namespace}" for namespace in namespaces]
    return [
        *["setpriv", "--pdeathsig", "KILL", "--"],
        *["unshare", "--mount", "--pid", "--fork", "--kill-child", *flags, "--"],
    ]
