"""The bastion on the local cluster, with the OpenSSH client of this machine."""
