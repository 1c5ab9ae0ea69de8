"""A machine's network: its interface, its firewall, and its route.

A third network namespace is between those of the emulator and the machine. It stands
for EC2's side of the interface. The metadata service and EC2's endpoint listen in it.
It also has the rules of the security groups, so that processes on the machine cannot
change them.
The namespace has no name, so it ends with the last process that holds it.
"""

import ctypes
import os
import socket
import subprocess
import threading
from collections.abc import Callable
from ipaddress import IPv4Address
from pathlib import Path
from typing import TypeVar

METADATA = "169.254.169.254"
# The address of the machine's next hop, and of EC2's endpoint.
NEXT_HOP = "169.254.1.1"
CLONE_NEWNET = 0x40000000

T = TypeVar("T")


class Cable:
    """The connection from the emulator's namespace to a machine's, for one address."""

    def __init__(self, gateway: IPv4Address, address: str, mac: str) -> None:
        self.address = address
        self._mac = mac
        # The name of the interface is unique. The kernel allows fifteen bytes.
        self._outside = f"ec2-{int(IPv4Address(address)):08x}"
        self._gateway = gateway
        self._namespace = _in_a_thread(_new_namespace)
        _ip(
            "link set dev lo up",
            f"address add {METADATA}/32 dev lo",
            f"address add {NEXT_HOP}/32 dev lo",
            namespace=self._namespace,
        )

    def connect(self, machine: int, public: bool) -> None:
        """Creates the interface of the machine with this process 1, and its routes."""
        ours = f"/proc/{os.getpid()}/fd/{self._namespace}"
        address, outside = self.address, self._outside
        # After a reboot the links of the previous boot still exist.
        self._cut()
        _ip(
            f"link add {outside} type veth peer name outer netns {ours}",
            f"address add {self._gateway}/32 dev {outside}",
            f"link set dev {outside} up",
        )
        _ip(
            "link set dev outer up",
            f"route replace {self._gateway} dev outer",
            f"route replace default via {self._gateway} dev outer",
            f"link add inner type veth peer name eth0 netns /proc/{machine}/ns/net",
            "link set dev inner up",
            f"route replace {address} dev inner",
            namespace=self._namespace,
        )
        forward = ["sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"]
        _run([*_entering(self._namespace), *forward], (self._namespace,))
        there = os.open(f"/proc/{machine}/ns/net", os.O_RDONLY)
        try:
            _ip(
                f"link set dev eth0 address {self._mac}",
                f"address add {address}/32 dev eth0",
                "link set dev eth0 up",
                f"route add {NEXT_HOP} dev eth0 src {address}",
                f"route add default via {NEXT_HOP} dev eth0 src {address}",
                namespace=there,
            )
        finally:
            os.close(there)
        if public:
            # The third namespace is the next hop on the way to the machine.
            via = f"via {NEXT_HOP} dev {outside} onlink"
            _ip(f"route replace {address} {via} src {self._gateway}")
            # Machines must reach each other, whether or not the host forwards packets.
            forwarding = Path(f"/proc/sys/net/ipv4/conf/{outside}/forwarding")
            forwarding.write_text("1")

    def guard(self, rules: list[str]) -> None:
        """Accepts packets that match a rule, and answers to the machine's connections.
        Drops all others."""
        accepted = "\n".join(f"    {rule} accept" for rule in rules)
        text = f"""
table ip groups
delete table ip groups
table ip groups {{
  chain in {{
    type filter hook forward priority filter; policy accept;
    iifname != "outer" accept
    ct state established,related accept
{accepted}
    drop
  }}
}}
"""
        _run([*_entering(self._namespace), "nft", "-f", "-"], (self._namespace,), text)

    def listen(self, address: str) -> socket.socket:
        """A socket in the third namespace that listens on port 80."""

        def open_socket() -> socket.socket:
            _libc("setns", self._namespace, CLONE_NEWNET)
            return socket.create_server((address, 80), backlog=64)

        return _in_a_thread(open_socket)

    def close(self) -> None:
        self._cut()
        os.close(self._namespace)

    def _cut(self) -> None:
        """Deletes the links. A link may be gone with the namespace of its other end."""
        delete = ["ip", "link", "delete"]
        inside = [*_entering(self._namespace), *delete, "inner"]
        subprocess.run([*delete, self._outside], capture_output=True)
        subprocess.run(inside, capture_output=True, pass_fds=(self._namespace,))


def _new_namespace() -> int:
    _libc("unshare", CLONE_NEWNET)
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY)


def _libc(name: str, *arguments: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def _in_a_thread(act: Callable[[], T]) -> T:
    """Calls `act` in a new thread, because it changes the thread's namespace."""
    done: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(act())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return done[0]


def _entering(namespace: int) -> list[str]:
    return ["nsenter", f"--net=/proc/self/fd/{namespace}", "--"]


def _ip(*lines: str, namespace: int | None = None) -> None:
    enter = [] if namespace is None else _entering(namespace)
    kept = () if namespace is None else (namespace,)
    _run([*enter, "ip", "-batch", "-"], kept, "\n".join(lines) + "\n")


def _run(command: list[str], kept: tuple[int, ...], given: str = "") -> None:
    done = subprocess.run(
        command, input=given, text=True, capture_output=True, pass_fds=kept
    )
    if done.returncode:
        said = done.stderr.strip() or done.stdout.strip()
        raise RuntimeError(f"{command[-3:]} failed: {said}; it was given:\n{given}")
