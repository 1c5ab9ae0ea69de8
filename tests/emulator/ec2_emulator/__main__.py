"""`python -m ec2_emulator --host H --port P`"""

import argparse
import contextlib
import logging
import os
import signal
import sys
import threading
from ipaddress import IPv4Network
from pathlib import Path

# moto reads these variables when it is imported. The emulator has its own images.
os.environ["MOTO_EC2_LOAD_DEFAULT_AMIS"] = "false"
# By default moto does not validate. It has to, in calls that the emulator leaves to it.
os.environ["MOTO_ENABLE_AMI_VALIDATION"] = "1"
os.environ["MOTO_EC2_ENABLE_INSTANCE_TYPE_VALIDATION"] = "1"

from .app import build_app  # noqa: E402
from .clock import Clock  # noqa: E402
from .emulator import Emulator, Place  # noqa: E402
from .server import make_server  # noqa: E402
from .settings import Settings  # noqa: E402
from .warmup import warm_up  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="ec2_emulator", description="EC2 for tests and demonstrations"
    )
    parser.add_argument("--host", default="127.0.0.1", help="default: %(default)s")
    parser.add_argument(
        "--port", type=int, default=5000, help="default: %(default)s; 0: any free one"
    )
    parser.add_argument(
        "--agent-host",
        help="where EKS's Pod Identity agent is found too, at port 80: 169.254.170.23",
    )
    parser.add_argument(
        "--machines",
        type=Path,
        help="a folder for what machines write, if instances may boot",
    )
    parser.add_argument(
        "--machine-network",
        help="with --machines: the public addresses of machines, such as 10.245.0.0/24",
    )
    arguments = parser.parse_args()
    if (arguments.machines is None) != (arguments.machine_network is None):
        parser.error("--machines and --machine-network belong together")
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(asctime)s %(message)s"
    )

    emulator = Emulator(Settings(), Clock(), _place(arguments))
    app = build_app(emulator)
    # The warm-up is before the emulator reports that it is ready, and before it logs.
    warm_up(app)
    logging.getLogger("ec2_emulator").setLevel(logging.INFO)
    threading.Thread(target=emulator.keep_time, daemon=True).start()
    server = make_server(app, arguments.host, arguments.port)
    host, port = server.bind_addr
    logging.getLogger("ec2_emulator").info("listening on http://%s:%s", host, port)
    if arguments.agent_host:
        agent = make_server(app, arguments.agent_host, 80)
        threading.Thread(target=agent.serve, daemon=True).start()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with contextlib.suppress(KeyboardInterrupt, SystemExit):
        server.serve()
    # The emulator has nothing to save, and need not wait for long polls.
    logging.shutdown()
    os._exit(0)


def _place(arguments: argparse.Namespace) -> Place | None:
    if arguments.machines is None:
        return None
    return Place(arguments.machines, str(IPv4Network(arguments.machine_network)))


if __name__ == "__main__":
    main()
