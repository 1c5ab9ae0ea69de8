"""One instance and its lifecycle: EC2's states, which follow the time.

https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-instance-lifecycle.html
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from moto.ec2.models.instances import Instance, InstanceState, StateReason

from .images import boots

CODES = {
    "pending": 0,
    "running": 16,
    "shutting-down": 32,
    "terminated": 48,
    "stopping": 64,
    "stopped": 80,
}

USER_SHUTDOWN = StateReason(
    "Client.UserInitiatedShutdown: User initiated shutdown",
    "Client.UserInitiatedShutdown",
)
INSTANCE_SHUTDOWN = StateReason(
    "Client.InstanceInitiatedShutdown: Instance initiated shutdown",
    "Client.InstanceInitiatedShutdown",
)
SPOT_TERMINATION = StateReason(
    "Server.SpotInstanceTermination: Spot instance termination",
    "Server.SpotInstanceTermination",
)
_PENDING = StateReason("pending", "pending")
_NONE = StateReason()

# The states in which an instance has a public address.
_ADDRESSED = ("running", "stopping")
# Seconds between two checks whether a machine has shut down.
_LOOK_SECONDS = 0.1


class EmulatedInstance(Instance):
    """A moto instance whose state changes take time.

    `region` is its Region, which schedules the next change of state, and is told of
    each one.
    """

    def __init__(self, region: Any, image_id: str, **kwargs: Any) -> None:
        self.region = region
        self._name = "pending"
        # A transition that was scheduled in an earlier epoch is no longer valid.
        self._epoch = 0
        self.sequence = 0
        self.reservation_id = ""
        self.spot_request: Any = None
        self.running_since: float | None = None
        self.impaired: str | None = None
        # Events as DescribeInstanceStatus shows them.
        self.scheduled: list[dict[str, Any]] = []
        # Whether the instance may use the account's open capacity reservations.
        self.capacity_reservations = "open"
        # The times, in seconds since the epoch, of a rebalance recommendation, and of
        # the coming interruption.
        self.rebalance_at: float | None = None
        self.interruption_at: float | None = None
        # The console output of a machine that is off. A test sets it for an instance that
        # has no machine; None is the output of all such instances.
        self.printed: bytes | None = None
        user_data = kwargs.pop("user_data")
        groups = kwargs.pop("security_groups")
        super().__init__(region.backend, image_id, user_data, groups, **kwargs)
        self.launched = region.clock.seconds()
        self.launch_time = region.clock.now().replace(tzinfo=None)
        self.state_reason = _PENDING
        for nic in self.nics.values():
            nic.stop()

    # moto assigns `_state` in its constructor and reads it everywhere.
    @property
    def _state(self) -> InstanceState:
        return InstanceState(self._name, CODES[self._name])

    @_state.setter
    def _state(self, _: InstanceState) -> None:
        """Ignores moto's changes. Only the instance's own transitions change it."""

    @property
    def has_public_address(self) -> bool:
        return self._name in _ADDRESSED

    @property
    def has_network(self) -> bool:
        """Whether EC2 still shows addresses, subnet and groups. Recorded answers of
        TerminateInstances (cloud-custodian, test_ec2_terminate) show none any more."""
        return self._name not in ("shutting-down", "terminated")

    @property
    def console(self) -> bytes:
        """The console output of an instance that has no machine, or whose machine is
        off."""
        if self.printed is not None:
            return self.printed
        settings = self.region.settings
        return b"" if self.running_since is None else settings.console.encode()

    @property
    def profile(self) -> dict[str, str] | None:
        """The instance profile, as DescribeInstances shows it."""
        association = self.ec2_backend.iam_instance_profile_associations.get(self.id)
        if association is None:
            return None
        profile = association.iam_instance_profile
        return {"Arn": profile.arn, "Id": profile.id}

    @property
    def roles(self) -> list[str]:
        """The names of the instance profile's roles: one, or none."""
        association = self.ec2_backend.iam_instance_profile_associations.get(self.id)
        profile = association.iam_instance_profile if association else None
        return [role.name for role in profile.roles] if profile else []

    @property
    def is_one_time_spot(self) -> bool:
        return self.spot_request is not None and self.spot_request.type == "one-time"

    @property
    def visible(self) -> bool:
        """Whether Describe calls show the instance already."""
        delay = self.region.settings.visibility_seconds
        return bool(self.region.clock.reached(self.launched + delay))

    def begin(self, death: StateReason | None = None) -> None:
        """Enters `pending`. To be called once, after construction. `death` is the reason
        for which EC2 ends the instance before it runs."""
        self._enter("pending", _PENDING, "")
        pending = self.region.settings.pending_seconds
        if death is None:
            self._schedule(pending, self._run)
        else:
            self._schedule(pending / 2, lambda due: self._die(death, due))

    def _die(self, reason: StateReason, due: float) -> None:
        self.end(reason, "Server", due)

    def start(self) -> InstanceState:
        previous = self._state
        if self._name == "stopped":
            now = self.region.clock.now()
            self.launch_time = now.replace(tzinfo=None)
            self._enter("pending", _PENDING, "")
            self._schedule(self.region.settings.pending_seconds, self._run)
        return previous

    def stop(self, reason: StateReason = USER_SHUTDOWN) -> InstanceState:
        previous = self._state
        if self._name == "running":
            now = self.region.clock.now().strftime("%Y-%m-%d %H:%M:%S")
            self._enter("stopping", reason, f"User initiated ({now} GMT)")
            self._shut_machine_down()
            self._schedule(self.region.settings.stopping_seconds, self._halt)
        return previous

    def shut_down_by_itself(self) -> None:
        """The machine was shut down from inside. `InstanceInitiatedShutdownBehavior`
        says what follows."""
        if self._name == "running":
            stays = self.instance_initiated_shutdown_behavior == "stop"
            if stays and not self.is_one_time_spot:
                self.stop(INSTANCE_SHUTDOWN)
            else:
                self.end(INSTANCE_SHUTDOWN, "User")

    def terminate(self) -> InstanceState:
        return self.end(USER_SHUTDOWN, "User")

    def end(
        self, reason: StateReason, initiator: str, at: float | None = None
    ) -> InstanceState:
        """Begins to shut down, now or at the time `at`. A second call has no effect."""
        previous = self._state
        if self._name not in ("shutting-down", "terminated"):
            began = self.region.clock.seconds() if at is None else at
            stamp = datetime.fromtimestamp(began, UTC).strftime("%Y-%m-%d %H:%M:%S")
            transition = f"{initiator} initiated ({stamp} GMT)"
            self._enter("shutting-down", reason, transition)
            self._shut_machine_down()
            lasts = self.region.settings.shutting_down_seconds
            self._schedule_at(began + lasts, self._vanish)
        return previous

    def reboot(self) -> None:
        """A reboot leaves the state at `running`."""
        if self.machines is not None:
            self.machines.reboot(self)

    def release(self) -> None:
        """Releases volumes, interfaces and addresses, as EC2 does on termination."""
        for device, block in self.get_block_device_mapping:
            del self.block_device_mapping[device]
            volume = self.ec2_backend.volumes[block.volume_id]
            volume.attachment = None
            if block.delete_on_termination:
                self.ec2_backend.delete_volume(volume.id)
                self.region.volume_deleted(volume.id)
        for nic in list(self.nics.values()):
            nic.stop()
            self._disassociate_addresses(nic)
            self.detach_eni(nic)
            if nic.delete_on_termination:
                nic.delete()
        # A remaining interface keeps its address. moto's destructor would free it.
        self._private_ips = set()
        self._subnet_id = None
        self.security_groups = []
        self.ec2_backend.iam_instance_profile_associations.pop(self.id, None)

    @property
    def machines(self) -> Any:
        """The hypervisor, if the instance's image boots and there are machines."""
        return self.region.machines if boots(self.image_id) else None

    def _run(self, due: float) -> None:
        for nic in self.nics.values():
            nic.start()
        if self.machines is not None:
            nic = self.nics[0]
            if nic.public_ip and nic.public_ip_auto_assign:
                nic.public_ip = self.machines.address()
            self.machines.switch_on(self)
        self.running_since = due
        self._enter("running", _NONE, "")

    def _shut_machine_down(self) -> None:
        if self.machines is not None:
            self.machines.shut_down(self)

    def _machine_is_on(self) -> bool:
        return self.machines is not None and self.machines.is_on(self)

    def _halt(self, _: float) -> None:
        if self._machine_is_on():
            self._schedule(_LOOK_SECONDS, self._halt)
            return
        for nic in self.nics.values():
            nic.stop()
        self._enter("stopped", self.state_reason, self._reason)

    def _vanish(self, due: float) -> None:
        if self._machine_is_on():
            self._schedule(_LOOK_SECONDS, self._vanish)
            return
        self.release()
        if self.machines is not None:
            self.machines.storage.forget_root(self.id)
        self._enter("terminated", self.state_reason, self._reason)
        self.region.forget_later(self, due)

    def _disassociate_addresses(self, nic: Any) -> None:
        """Disassociates Elastic IP addresses, which outlive the instance."""
        for address in list(self.ec2_backend.addresses):
            if address.eni is nic:
                self.ec2_backend.disassociate_address(
                    association_id=address.association_id
                )

    def _enter(self, name: str, reason: StateReason, transition: str) -> None:
        self._name = name
        self._epoch += 1
        self.state_reason = reason
        self._reason = transition
        self.region.state_changed(self)

    def _schedule(self, seconds: float, happen: Callable[[float], None]) -> None:
        self._schedule_at(self.region.clock.seconds() + seconds, happen)

    def _schedule_at(self, time: float, happen: Callable[[float], None]) -> None:
        epoch = self._epoch

        def unless_overtaken(due: float) -> None:
            if self._epoch == epoch:
                happen(due)

        self.region.timeline.at(time, unless_overtaken)

    @property
    def private_ip(self) -> str | None:
        return self.nics[0].private_ip_address if 0 in self.nics else None

    @property
    def public_ip(self) -> str | None:
        return self.nics[0].public_ip if 0 in self.nics else None

    @property
    def private_dns_name(self) -> str:
        return super().private_dns_name if self.private_ip else ""
