"""A node's main process: checks, prepares, and runs sshd until the pod stops."""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, NoReturn

import home
import places
import readiness
import software
import sshd_config
from failure import Failure, reported

# How long programs may take to end when the pod stops.
MOMENT = 10.0
PERIOD = 0.05
# What stays when nothing but sessions is left; none of these has work to save.
WITHOUT_WORK = re.compile(
    r"sshd.*|(ba|da|z|fi)?sh|tmux.*|screen|sftp-server|sleep|tail|less"
)
# The readiness probe leaves this in sshd's log.
OF_PROBE = re.compile(
    rb"Connection (closed|reset) by (127\.0\.0\.1|::1) port \d+( \[preauth\])?\s*"
)


class Stop(BaseException):
    """The pod is to stop."""


def main() -> int:
    signal.signal(signal.SIGTERM, _stop)
    try:
        return reported(_run)
    except Stop:
        return 0


def _stop(_signal: int, _frame: object) -> NoReturn:
    # Once is enough, and what follows must not be interrupted.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Stop


def _run() -> int:
    run = places.RUN
    _check_account()
    variables = sshd_config.session(os.environ)
    for name, value in variables.items():
        if not sshd_config.expressible(value):
            print(
                f"warning: sessions lack {name}: it has a line's end", file=sys.stderr
            )
    versions = software.check(variables)
    home.prepare(places.HOME, run)
    _configure(run, variables)
    found = ", ".join(f"{module} {version}" for module, version in versions.items())
    print(f"{found}; starting sshd", file=sys.stderr, flush=True)
    _serve(_sshd(), run / places.SSHD_CONFIG)
    return 0


def _check_account() -> None:
    """sshd logs in whom /etc/passwd names, to the home that stands there."""
    uid = os.getuid()
    try:
        account = pwd.getpwuid(uid)
    except KeyError:
        raise Failure(
            f"the image's /etc/passwd has no user with uid {uid}: add {places.USER},"
            f" with home {places.HOME} and a shell"
        ) from None
    if account.pw_name != places.USER or account.pw_dir != str(places.HOME):
        raise Failure(
            f"uid {uid} is {account.pw_name} with home {account.pw_dir} in the image's"
            f" /etc/passwd: it must be {places.USER} with home {places.HOME}"
        )
    if not os.access(account.pw_shell, os.X_OK):
        raise Failure(f"{places.USER}'s shell, {account.pw_shell}, is not in the image")


def _configure(run: Path, variables: Mapping[str, str]) -> None:
    workspace = os.environ["WORKSPACE_NAME"]
    hosts = os.environ["WORKSPACE_HOSTS"].split()
    for key in [places.HOST_KEY, places.GANG_KEY]:
        if not (run / key).exists():
            raise Failure(
                f"{run / key} is missing: the init container `prepare` must run first,"
                f" with the same volume at {run}"
            )
    public = (run / f"{places.HOST_KEY}.pub").read_text()
    gang = (run / f"{places.GANG_KEY}.pub").read_text()
    files = {
        places.GANG_AUTHORIZED_KEYS: gang,
        places.KNOWN_HOSTS: sshd_config.known_hosts(
            sshd_config.alias(workspace), public
        ),
        places.SSH_CONFIG: sshd_config.ssh(run, workspace, hosts),
        places.SESSION: json.dumps(variables),
        places.SSHD_CONFIG: sshd_config.sshd(run, variables),
    }
    for name, content in files.items():
        places.write(run / name, content)
    _exempt_probes(run / places.SSHD_CONFIG)


def _sshd() -> str:
    # Where distributions put it, and unprivileged users do not look.
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin"
    program = shutil.which("sshd", path=path)
    if program is None:
        raise Failure("the image has no sshd: install OpenSSH's server in it")
    return program


def _exempt_probes(config: Path) -> None:
    """From 9.8 on, sshd turns away addresses that connect and never log in, as the
    readiness probe does. Older ones do not know the setting."""
    text = config.read_text()
    places.write(config, text + "PerSourcePenalties no\n")
    if _complaint(config):
        places.write(config, text)
        if complaint := _complaint(config):
            raise Failure(f"the image's sshd refuses its configuration: {complaint}")


def _complaint(config: Path) -> str:
    tested = subprocess.run(
        [_sshd(), "-t", "-f", str(config)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    return tested.stderr.strip() if tested.returncode else ""


def _serve(program: str, config: Path) -> NoReturn:
    # sshd starts itself again for each connection, by its absolute path.
    daemon = subprocess.Popen(
        [program, "-D", "-e", "-f", str(config)],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert daemon.stderr is not None
    threading.Thread(target=_log, args=[daemon.stderr], daemon=True).start()
    _answer_probes()
    try:
        while True:
            # As process 1 it is also given what others left behind.
            process, status = os.wait()
            if process == daemon.pid:
                raise Failure(
                    f"sshd ended with {os.waitstatus_to_exitcode(status)}; what it said"
                    " is in the container's log"
                )
    except Stop:
        # No more logins; then the work, while its connections are still there.
        daemon.terminate()
        _end_work()
        raise


def _answer_probes() -> None:
    try:
        readiness.serve(readiness.of_sshd())
    except OSError as error:
        raise Failure(
            f"port {readiness.PORT} of the pod, where the kubelet asks whether sshd"
            f" answers, cannot be listened on: {error.strerror}"
        ) from None


def _log(lines: IO[bytes]) -> None:
    for line in lines:
        if not OF_PROBE.fullmatch(line):
            sys.stderr.buffer.write(line)
            sys.stderr.buffer.flush()


def _end_work() -> None:
    """SIGTERM for everything that may have work to save, and a moment for it. The
    kernel ends the rest with this process."""
    for process in _working():
        try:
            os.kill(process, signal.SIGTERM)
        except ProcessLookupError:
            continue
    deadline = time.monotonic() + MOMENT
    while _working() and time.monotonic() < deadline:
        _reap()
        time.sleep(PERIOD)


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def _working() -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, _, rest = (folder / "stat").read_text().rpartition(")")
        except OSError:
            # It has ended meanwhile.
            continue
        process, zombie = int(folder.name), rest.split()[0] == "Z"
        own = process in (1, os.getpid())
        if (
            not own
            and not zombie
            and not WITHOUT_WORK.fullmatch(name.partition("(")[2])
        ):
            found.append(process)
    return found
