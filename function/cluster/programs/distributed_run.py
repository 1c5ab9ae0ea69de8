"""workspace-torchrun: one torchrun on every node, as one run."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import gang
import launch
import places
import session_environment
from gang import Node

NAME = "workspace-torchrun"
USAGE = f"{NAME} [--wait SECONDS] [--restarts N] [torchrun's arguments] script.py …"
WAIT = 600.0
PORT = 29500


@dataclass(frozen=True)
class Options:
    wait: float
    restarts: int
    # For torchrun, as they are.
    arguments: list[str]


def main(arguments: Sequence[str]) -> int:
    options = parsed(arguments)
    try:
        nodes = gang.nodes(os.environ)
        if len(nodes) == 1 and not options.restarts:
            return _alone(options.arguments)
        return _attempts(nodes, options)
    except gang.Missing as missing:
        tell(f"error: {missing}")
        return 1
    except KeyboardInterrupt:
        # While waiting; a run passes it on itself.
        return 130


def parsed(arguments: Sequence[str]) -> Options:
    """Own options stand first: what follows is torchrun's and the script's, which
    may have options of the same names."""
    parser = argparse.ArgumentParser(
        prog=NAME,
        usage=USAGE,
        description="Runs torchrun on every node of the workspace, in this folder.",
        epilog="Own options come first; all others are torchrun's, see torchrun --help.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--wait",
        type=float,
        default=WAIT,
        metavar="SECONDS",
        help="how long to wait for nodes that do not answer (default: %(default)g)",
    )
    parser.add_argument(
        "--restarts",
        type=int,
        default=0,
        metavar="N",
        help="start over so many times when a node fails (default: %(default)s)",
    )
    own, rest = split(list(arguments))
    options = parser.parse_args(own)
    if not rest:
        parser.error("nothing to run: name a script")
    return Options(options.wait, options.restarts, rest)


def split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Own options, and the rest."""
    at = 0
    while at < len(arguments):
        argument = arguments[at]
        if argument in ("--wait", "--restarts"):
            at += 2
        elif argument in ("-h", "--help") or argument.startswith(
            ("--wait=", "--restarts=")
        ):
            at += 1
        else:
            break
    return arguments[:at], arguments[at:]


def tell(text: str) -> None:
    print(f"{NAME}: {text}", file=sys.stderr, flush=True)


def environment_of(attempt: int, run: str, base: Mapping[str, str]) -> dict[str, str]:
    """Nothing of an attempt is taken for another one's: neither its port, where what
    is left of the last one may still listen, nor its rendezvous."""
    port = int(base.get("PET_MASTER_PORT") or PORT)
    return {
        "PET_MASTER_PORT": str(port + attempt),
        "PET_RDZV_ID": f"{run}-{attempt}",
    }


def taken_over() -> dict[str, str]:
    """What this session sets beyond what every session has."""
    session = session_environment.at_start(places.RUN / places.SESSION)
    return session_environment.changed(os.environ, session)


def _alone(arguments: list[str]) -> int:
    try:
        os.execvp("torchrun", ["torchrun", *arguments])
    except FileNotFoundError:
        tell("error: the image has no torchrun on its PATH")
        return 127


def _attempts(nodes: list[Node], options: Options) -> int:
    run, session = secrets.token_hex(6), taken_over()
    attempt = 0
    while True:
        gang.wait(nodes, options.wait, tell)
        job = launch.Job(
            ["torchrun", *options.arguments],
            os.getcwd(),
            {**session, **environment_of(attempt, run, os.environ)},
        )
        outcome = launch.run(nodes, job)
        if outcome.status == 0 or outcome.signalled:
            return outcome.status
        if attempt == options.restarts:
            tell(f"{outcome.why()}; the others were ended")
            return outcome.status
        attempt += 1
        tell(f"{outcome.why()}; restart {attempt} of {options.restarts}")
