"""The machines of all instances that boot, and EC2's actions on them.

Methods that are called under the emulator's lock only start an action. Machines
complete it in threads of their own, and the instance's states wait for them.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

from machines.disks import Disk
from machines.machine import Machine

from ..ec2.instance import EmulatedInstance
from . import groups, metadata
from .cable import METADATA, NEXT_HOP, Cable
from .endpoint import Endpoint
from .machine import BootedMachine, arguments
from .metadata_server import MetadataServer
from .sessions import Sessions
from .storage import Storage

# The machine's file with the endpoint and the region of AWS.
ENVIRONMENT = "etc/systemd/system.conf.d/50-aws.conf"
# Seconds until a machine that does not shut down is switched off. EC2 does that after
# minutes. Services may use the two minutes of a spot interruption.
PATIENCE_SECONDS = 150.0

log = logging.getLogger("ec2_emulator")


@dataclass(frozen=True)
class Base:
    """The base of all machines: layers of folders, the topmost first."""

    layers: tuple[Path, ...]
    mountpoint: Path
    packages: Path


@dataclass
class Seat:
    """The parts of an instance that is on."""

    cable: Cable
    servers: tuple[MetadataServer, Endpoint]
    machine: BootedMachine | None = None
    # The attached disks and their device names, by volume.
    disks: dict[str, tuple[str, Disk]] = field(default_factory=dict)


class Hypervisor:
    """`world` is the emulator. `app` is the WSGI application for AWS's calls."""

    def __init__(
        self, world: Any, app: Any, base: Base, below: Path, network: str
    ) -> None:
        self.storage = Storage(below)
        self.sessions = Sessions()
        self._world = world
        self._base = base
        self._app = app
        self._network = IPv4Network(network)
        self._hosts = self._all_hosts()
        self._seats: dict[str, Seat] = {}

    def address(self) -> str:
        """A free public address for a machine. The addresses are used in turn, so that
        it was not in use recently."""
        taken = {seat.cable.address for seat in self._seats.values()}
        for _ in range(self._network.num_addresses):
            address = str(next(self._hosts))
            if address not in taken:
                return address
        raise RuntimeError(f"{self._network} has no free address")

    def switch_on(self, instance: EmulatedInstance) -> None:
        address = instance.public_ip or instance.private_ip
        assert address is not None
        cable = Cable(self._gateway, address, instance.nics[0].mac_address)
        look = lambda: self._look(instance)
        servers = (
            MetadataServer(cable.listen(METADATA), look),
            Endpoint(cable.listen(NEXT_HOP), self._app),
        )
        seat = self._seats[instance.id] = Seat(cable, servers)
        root = self.storage.root(instance.id)
        self._write_environment(root / "upper" / ENVIRONMENT, instance)
        base = self._base
        given = arguments(base.layers, base.mountpoint, base.packages, root)
        seat.machine = BootedMachine(
            instance.id,
            given,
            PATIENCE_SECONDS,
            lambda inside: self._prepare(instance, seat, inside),
            lambda by_itself: self._ended(instance, seat, by_itself),
        )

    def shut_down(self, instance: EmulatedInstance) -> None:
        if (machine := self._machine(instance)) is not None:
            machine.shut_down()

    def reboot(self, instance: EmulatedInstance) -> None:
        if (machine := self._machine(instance)) is not None:
            machine.reboot()

    def is_on(self, instance: EmulatedInstance) -> bool:
        return instance.id in self._seats

    def console(self, instance: EmulatedInstance) -> bytes:
        """The console output since the last start. It remains after the shutdown."""
        machine = self._machine(instance)
        return machine.console() if machine is not None else instance.console

    def guard(self) -> None:
        """Updates every machine's firewall rules from its security groups."""
        for instance_id, seat in list(self._seats.items()):
            instance = self._world.find_instance(instance_id)
            if instance is not None:
                seat.cable.guard(self._rules(instance))

    def attach(self, instance: EmulatedInstance, volume: Any) -> None:
        """Shows the volume to the machine, if the machine is on."""
        seat = self._seats.get(instance.id)
        machine = seat.machine if seat else None
        if seat is not None and machine is not None and machine.inside is not None:
            self._show(seat, machine.inside, volume)

    def detach(self, instance: EmulatedInstance, volume: Any) -> bool:
        """Removes the volume from the machine. Returns False if its file system is
        mounted: EC2 then waits, too."""
        seat = self._seats.get(instance.id)
        if seat is None or volume.id not in seat.disks:
            return True
        name, disk = seat.disks[volume.id]
        if disk.is_mounted():
            return False
        if seat.machine is not None and seat.machine.inside is not None:
            disk.detach(seat.machine.inside, name)
        disk.close()
        del seat.disks[volume.id]
        return True

    def grow(self, volume: Any) -> None:
        """Gives an attached disk its volume's new size at once."""
        for seat in self._seats.values():
            if volume.id in seat.disks:
                _, disk = seat.disks[volume.id]
                disk.grow(volume.size << 10)

    def clear(self) -> None:
        """Kills all machines. Must not be called under the emulator's lock."""
        for seat in list(self._seats.values()):
            if seat.machine is not None:
                seat.machine.kill()
        self.sessions.clear()

    @property
    def _gateway(self) -> IPv4Address:
        return next(self._network.hosts())

    def _all_hosts(self) -> Iterator[IPv4Address]:
        while True:
            hosts = self._network.hosts()
            next(hosts)
            yield from hosts

    def _machine(self, instance: EmulatedInstance) -> BootedMachine | None:
        seat = self._seats.get(instance.id)
        return seat.machine if seat is not None else None

    def _look(self, instance: EmulatedInstance) -> tuple[Any, metadata.Tree]:
        with self._world.held():
            tree = metadata.tree(instance, lambda: self._credentials(instance))
            return instance.metadata_options, tree

    def _credentials(self, instance: EmulatedInstance) -> dict[str, str]:
        with self._world.held():
            return self.sessions.begin(instance)

    def _prepare(self, instance: EmulatedInstance, seat: Seat, inside: Machine) -> None:
        seat.cable.connect(inside.pid, public=instance.public_ip is not None)
        # In a VPC, the VPC's name server knows the machine's name.
        name = instance.private_dns_name
        known = f"127.0.0.1 localhost\n127.0.1.1 {name} {name.split('.')[0]}\n"
        Path(inside.outside("/etc/hosts")).write_text(known)
        with self._world.held():
            seat.cable.guard(self._rules(instance))
            for _, disk in seat.disks.values():
                disk.close()
            seat.disks.clear()
            for device, block in instance.get_block_device_mapping:
                if device != instance.root_device_name:
                    volume = instance.ec2_backend.volumes[block.volume_id]
                    self._show(seat, inside, volume)

    def _show(self, seat: Seat, inside: Machine, volume: Any) -> None:
        if volume.id in seat.disks:
            return
        # On EC2 the first disk, nvme0n1, is the root. Here the root is no disk.
        taken = {name for name, _ in seat.disks.values()}
        free = (f"nvme{number}n1" for number in range(1, 27))
        name = next(one for one in free if one not in taken)
        disk = Disk(file=self.storage.volume(volume.id, volume.size))
        disk.attach(inside, name)
        seat.disks[volume.id] = (name, disk)

    def _ended(self, instance: EmulatedInstance, seat: Seat, by_itself: bool) -> None:
        """The machine's thread calls this when the machine is off."""
        for server in seat.servers:
            server.close()
        seat.cable.close()
        with self._world.held():
            for _, disk in seat.disks.values():
                disk.close()
            if seat.machine is not None:
                instance.printed = seat.machine.console()
            self._seats.pop(instance.id, None)
            if by_itself:
                instance.shut_down_by_itself()

    def _rules(self, instance: EmulatedInstance) -> list[str]:
        members: dict[str, set[str]] = {}
        for instance_id, seat in self._seats.items():
            member = self._world.find_instance(instance_id)
            for group in member.security_groups if member is not None else ():
                members.setdefault(group.id, set()).add(seat.cable.address)
        return groups.accepted(instance.security_groups, members)

    def _write_environment(self, file: Path, instance: EmulatedInstance) -> None:
        endpoint = f"http://{NEXT_HOP}"
        variables = {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ENDPOINT_URL_EC2": endpoint,
            "AWS_REGION": instance.region.name,
        }
        file.parent.mkdir(parents=True, exist_ok=True)
        text = " ".join(f'"{name}={value}"' for name, value in variables.items())
        file.write_text(f"[Manager]\nDefaultEnvironment={text}\n")
