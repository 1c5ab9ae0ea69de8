"""Instances that boot: each instance of one image has a real machine.

A machine consists of namespaces around a real root file system, with systemd,
cloud-init, sshd and a metadata service. See the README.
"""
