"""The ways to a workspace."""

from enum import Enum


class Way(Enum):
    # ssh with `ssh bastion connect NAME` as its ProxyCommand.
    BASTION = "bastion"
    # `ssh -J`, with Debian's sshd in a pod.
    JUMP = "jump"
    # `kubectl port-forward`, and ssh to its port.
    FORWARD = "port-forward"
    # ssh to the pod's address.
    DIRECT = "direct"
