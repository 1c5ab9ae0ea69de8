"""What a client sends beside a command line: variables, subsystems, names of accounts."""

from typing import Any

Class = dict[str, Any]

# Variables that change programs before, or while, they run: those of the loader (ld.so(8)), of the
# C library, of shells, of interpreters, of OpenSSH, and of devctl itself.
VARIABLES = {
    "LD_PRELOAD": "/usr/lib/hostile.so",
    "LD_AUDIT": "/usr/lib/hostile.so",
    "LD_LIBRARY_PATH": "/tmp",
    "LD_DEBUG": "all",
    "LD_DEBUG_OUTPUT": "/tmp/x",
    "LD_SHOW_AUXV": "1",
    "LD_TRACE_LOADED_OBJECTS": "1",
    "LD_PROFILE": "libc.so.6",
    "GLIBC_TUNABLES": "glibc.malloc.check=3:glibc.malloc.mxfast=glibc.malloc.mxfast=A",
    "MALLOC_TRACE": "/tmp/x",
    "GCONV_PATH": "/tmp",
    "LOCPATH": "/tmp",
    "NLSPATH": "/tmp/%N",
    "HOSTALIASES": "/etc/passwd",
    "RES_OPTIONS": "debug",
    "SHELL": "/bin/sh",
    "ENV": "/etc/passwd",
    "BASH_ENV": "/etc/passwd",
    "PS4": "$(id)",
    "IFS": "lt",
    "PATH": "/tmp",
    "HOME": "/etc",
    "USER": "root",
    "LOGNAME": "root",
    "SSH_ORIGINAL_COMMAND": "show x",
    "SSH_CONNECTION": "127.0.0.1 1 127.0.0.1 2222",
    "SSH_CLIENT": "127.0.0.1 1 2222",
    "SSH_USER_AUTH": "/etc/passwd",
    "SSH_AUTH_SOCK": "/run/gpu-bastion/broker.sock",
    "SSH_ASKPASS": "/bin/sh",
    "KUBECONFIG": "/etc/passwd",
    "KUBERNETES_SERVICE_HOST": "127.0.0.1",
    "DEVCTL_NAMESPACE": "kube-system",
    "DEVCTL_CONTEXT": "x",
    "DEVCTL_IDENTITY": "/etc/passwd",
    "DEVCTL_BASTION": "root@127.0.0.1",
    "HTTPS_PROXY": "http://127.0.0.1:1",
    "RUST_LOG": "trace",
    "RUST_BACKTRACE": "full",
    "CLICOLOR_FORCE": "1",
    "TERM": "\x1b[2J",
    "TZ": "../../etc/passwd",
    "LANG": "\x1b[2J",
    "LC_ALL": "../../tmp",
    "() { :;}; id": "() { :;}; id",
}


def environment() -> Class:
    lines = [{"name": name, "value": value} for name, value in VARIABLES.items()]
    return {
        "about": "variables that a client sets; the answer is as without them",
        "door": "environment",
        "lines": lines,
    }


def subsystems() -> Class:
    names = [
        "sftp",
        "internal-sftp",
        "sftp; id",
        "sftp\nid",
        "netconf",
        "publickey",
        "shell",
        "sh",
        "/bin/sh",
        "/usr/bin/gpu-bastion broker",
        "../../bin/sh",
        "$(id)",
        "-oProxyCommand=id",
        "%s%n",
        "\x1b[2J",
        "\u202eptfs",
        "x" * 1000,
    ]
    return {
        "about": "subsystems, of which there is none",
        "door": "subsystem",
        "lines": [{"name": name} for name in names],
    }


def logins() -> Class:
    """USER is the name of a person, whose key is right."""
    refused = [
        "root",
        "sshd",
        "broker",
        "gpu-bastion",
        "nobody",
        "USER;id",
        "USER id",
        " USER",
        "USER ",
        "USER\n",
        "USER\nroot",
        "$(id)",
        "`id`",
        "../USER",
        "USER@x",
        "x\\USER",
        "-oProxyCommand=id",
        "%u",
        "%s%n",
        "*",
        "USER*",
        "10022",
        "#10022",
        "\x1b[2J",
        "\u202eUSER",
        "USER\u200b",
        "x" * 1000,
        "USER,root",
        "USER/sysadm_r",
        "x:0:0::/:/bin/sh",
        "+",
    ]
    # OpenSSH takes what follows `:` for a style of login, which only passwords have.
    as_user = ["USER:id", "USER:x:0:0"]
    lines = [{"name": name, "opens": False} for name in refused]
    lines += [{"name": name, "opens": True} for name in as_user]
    return {"about": "names of accounts", "door": "login", "lines": lines}


CLASSES = (environment, subsystems, logins)
