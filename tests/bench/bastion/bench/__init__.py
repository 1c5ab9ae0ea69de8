"""`make bench-bastion`: what it costs to go through the bastion.

Real clients of OpenSSH go to the same workspaces in four ways: through the bastion, through
Debian's sshd as a jump host, by `kubectl port-forward`, and directly. The ways take turns, so
that what else the machine does slows all of them. `bars` says what is promised.
"""
