"""Instances that boot: real machines behind the instances of one image.

They are namespaces around a real root file system, with systemd, cloud-init, sshd and a
metadata service; see the README.
"""
