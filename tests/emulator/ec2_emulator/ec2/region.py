"""The emulator's state of one account's EC2 in one region, beside moto's backend."""

import itertools
from typing import Any

from ..clock import Clock
from ..errors import AwsError
from ..settings import Settings
from ..timeline import Timeline
from .events import publish
from .images import load_images, load_parameters
from .instance import EmulatedInstance
from .tokens import Tokens

# Seconds between two checks whether a volume is still mounted.
LOOK_SECONDS = 0.5


class Region:
    """`world` is the emulator, with its clock, settings and timeline."""

    def __init__(self, world: Any, account: str, name: str, backends: Any) -> None:
        self.account = account
        self.name = name
        self.backend = backends.ec2(account, name)
        self.instances: dict[str, EmulatedInstance] = {}
        self.tokens = Tokens()
        self._world = world
        self._backends = backends
        self._sequence = itertools.count(1)
        self._ended: dict[str, float] = {}
        self._creating: dict[str, float] = {}
        load_images(self.backend)
        load_parameters(backends.ssm(account, name))

    @property
    def clock(self) -> Clock:
        clock: Clock = self._world.clock
        return clock

    @property
    def settings(self) -> Settings:
        settings: Settings = self._world.settings
        return settings

    @property
    def machines(self) -> Any:
        """The hypervisor of instances that boot, or None."""
        return self._world.machines

    @property
    def timeline(self) -> Timeline:
        timeline: Timeline = self._world.timeline
        return timeline

    def adopt(self, instance: EmulatedInstance) -> None:
        instance.sequence = next(self._sequence)
        self.instances[instance.id] = instance

    def find(self, ids: list[str]) -> list[EmulatedInstance]:
        """The instances of these ids, or EC2's error for the first wrong one."""
        for one in ids:
            if not is_instance_id(one):
                raise AwsError("InvalidInstanceID.Malformed", f'Invalid id: "{one}"')
        missing = [one for one in ids if one not in self.instances]
        if missing:
            raise no_such_instance(missing)
        return [self.instances[one] for one in dict.fromkeys(ids)]

    def find_visible(self, ids: list[str]) -> list[EmulatedInstance]:
        """Like `find`, but treats an instance that is not visible yet as unknown."""
        found = self.find(ids)
        hidden = [one.id for one in found if not one.visible]
        if hidden:
            raise no_such_instance(hidden)
        return found

    def forget_later(self, instance: EmulatedInstance, ended: float) -> None:
        """Schedules the removal of a terminated instance from the lists, and the later
        removal of its token."""
        self._ended[instance.id] = ended
        retention = self.settings.terminated_retention_seconds
        self.timeline.at(ended + retention, lambda _: self._forget(instance))
        keep = self.settings.token_retention_seconds
        self.timeline.at(ended + keep + 1, lambda now: self._expire(now - keep))

    def ended_at(self, instances: list[EmulatedInstance]) -> float | None:
        """When the last of the instances was terminated. None while one is not."""
        times = [self._ended.get(one.id) for one in instances]
        known = [time for time in times if time is not None]
        return max(known) if known and len(known) == len(times) else None

    def volume_created(self, volume: Any) -> None:
        """Schedules the time at which a new volume is available."""
        seconds = self.settings.volume_creating_seconds
        self._creating[volume.id] = self.clock.seconds() + seconds

    def take_back(self, volume: Any) -> None:
        """Schedules the removal of a volume that EC2 cannot make after all.

        "CreateVolume" (API reference, `KmsKeyId`): with a key that it cannot use, the
        command succeeds, and the volume fails later.
        """

        def gone(_: float) -> None:
            self.backend.volumes.pop(volume.id, None)
            self._creating.pop(volume.id, None)
            self.volume_deleted(volume.id)

        self.timeline.at(self._creating[volume.id], gone)

    def volume_state(self, volume: Any) -> str:
        """EC2's state of a volume."""
        due = self._creating.get(volume.id)
        if due is not None:
            if not self.clock.reached(due):
                return "creating"
            del self._creating[volume.id]
        return "available" if volume.attachment is None else "in-use"

    def attach(self, volume: Any) -> None:
        """Makes a new attachment `attaching`, and schedules its `attached`."""
        attachment = volume.attachment
        attachment.status = "attaching"

        def attached(_: float) -> None:
            if attachment.status == "attaching":
                attachment.status = "attached"
                if (machines := attachment.instance.machines) is not None:
                    machines.attach(attachment.instance, volume)

        seconds = self.settings.attaching_seconds
        self.timeline.at(self.clock.seconds() + seconds, attached)

    def detach(self, volume: Any) -> None:
        """Makes an attachment `detaching`. The volume is in use until it is removed."""
        attachment = volume.attachment
        attachment.status = "detaching"

        def detached(due: float) -> None:
            machines = attachment.instance.machines
            # The termination of the instance may already have removed the attachment.
            if volume.attachment is attachment:
                if machines and not machines.detach(attachment.instance, volume):
                    # "Detach an Amazon EBS volume": a mounted volume stays attached.
                    self.timeline.at(due + LOOK_SECONDS, detached)
                    return
                volume.attachment = None
                attachment.instance.block_device_mapping.pop(attachment.device, None)

        seconds = self.settings.detaching_seconds
        self.timeline.at(self.clock.seconds() + seconds, detached)

    def groups_changed(self) -> None:
        if self.machines is not None:
            self.machines.guard()

    def content_copied(self, source: str, target: str) -> None:
        """Copies the content of a volume to a snapshot, or the other way round."""
        if self.machines is not None:
            self.machines.storage.copy(source, target)

    def volume_grown(self, volume: Any) -> None:
        if self.machines is not None:
            self.machines.grow(volume)

    def volume_deleted(self, volume_id: str) -> None:
        """Deletes the tags and the content of a volume, or of a snapshot."""
        self.backend.tags.pop(volume_id, None)
        if self.machines is not None:
            self.machines.storage.forget_volume(volume_id)

    def state_changed(self, instance: EmulatedInstance) -> None:
        if instance.spot_request is not None:
            instance.spot_request.follow(instance.state)
        self.publish(
            "EC2 Instance State-change Notification",
            instance,
            {"instance-id": instance.id, "state": instance.state},
        )

    def publish(
        self, kind: str, instance: EmulatedInstance, detail: dict[str, Any]
    ) -> None:
        events = self._backends.events(self.account, self.name)
        publish(events, kind, instance, detail, self.clock.now())

    def _forget(self, instance: EmulatedInstance) -> None:
        self.instances.pop(instance.id, None)
        self.backend.tags.pop(instance.id, None)
        reservation = self.backend.reservations.get(instance.reservation_id)
        if reservation is not None:
            reservation.instances = [
                one for one in reservation.instances if one is not instance
            ]
            if not reservation.instances:
                del self.backend.reservations[instance.reservation_id]
        if instance.spot_request is not None:
            requests = self.backend.spot_instance_requests
            requests.pop(instance.spot_request.id, None)

    def _expire(self, ended_before: float) -> None:
        self.tokens.expire(ended_before)
        self._ended = {
            one: ended for one, ended in self._ended.items() if ended >= ended_before
        }


def is_instance_id(text: str) -> bool:
    body = text.removeprefix("i-")
    plain = len(body) in (8, 17) and all(c in "0123456789abcdef" for c in body)
    return text.startswith("i-") and plain


def no_such_instance(missing: list[str]) -> AwsError:
    listed = ", ".join(missing)
    if len(missing) == 1:
        text = f"The instance ID '{listed}' does not exist"
    else:
        text = f"The instance IDs '{listed}' do not exist"
    return AwsError("InvalidInstanceID.NotFound", text)
