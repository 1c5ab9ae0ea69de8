"""Resources of others in the same account. Some look like ours."""

import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from environment.bystander import IMAGE
from environment.ec2 import CLUSTER, POOL, Ec2, Instance, tags
from environment.waiting import until

from .account import LAUNCH, POOL_UID, every


@dataclass
class Strangers:
    """The ids of all planted resources, and the state in which they were planted."""

    ec2: Ec2
    planted: set[str] = field(default_factory=set)
    instances: dict[str, Any] = field(default_factory=dict)
    things: dict[str, Any] = field(default_factory=dict)

    def plant(self, cluster: str, namespace: str, pool: str, uid: str) -> None:
        """Creates instances, templates and groups that look like those of a pool.

        Some have its name and UID, but the tag of another control plane. Some have its
        name and a UID of no pool: the provider leaves these alone for --orphan-grace,
        which is longer than a provider lives in this test. The others lack a tag.
        """
        mark = {POOL: f"{namespace}/{pool}", LAUNCH: "1"}
        nobody = str(uuid.uuid4())
        for owner in (
            {},
            {**mark, CLUSTER: "another", POOL_UID: uid},
            {**mark, CLUSTER: cluster, POOL_UID: nobody},
            {**mark, POOL_UID: uid},
            {**mark, CLUSTER: cluster},
        ):
            self._plant_instance(owner)
            self._plant_template(owner)
            self._plant_group(owner)

    def changes(self, live: list[Instance]) -> list[str]:
        """The ids of the planted instances that have changed."""
        there = {one["InstanceId"]: one for one in live}
        return [
            id_
            for id_, before in self.instances.items()
            if id_ not in there or _face(there[id_]) != before
        ]

    def changed_things(self) -> list[str]:
        """The ids of the planted templates and groups that have changed."""
        there = self._all_things()
        return [id_ for id_, one in self.things.items() if there.get(id_) != one]

    def settle(self, seconds: float) -> None:
        """Remembers all planted resources once the instances run and are older than
        `seconds`. EC2's lists may lack younger instances. One second is added because
        LaunchTime is in whole seconds."""
        age = timedelta(seconds=seconds + 1)

        def instances() -> list[Instance] | None:
            listed = self.ec2.instances()
            ours = [one for one in listed if one["InstanceId"] in self.planted]
            old = datetime.now(UTC) - age
            is_up = all(one["State"]["Name"] == "running" for one in ours)
            return ours if is_up and all(o["LaunchTime"] < old for o in ours) else None

        planted = until("others' instances", instances)
        self.instances = {one["InstanceId"]: _face(one) for one in planted}
        things = self._all_things().items()
        self.things = {id_: one for id_, one in things if id_ in self.planted}
        assert len(self.instances) + len(self.things) == len(self.planted)

    def go(self) -> None:
        client = self.ec2.client
        if self.instances:
            client.terminate_instances(InstanceIds=list(self.instances))
        for id_ in self.things:
            if id_.startswith("lt-"):
                client.delete_launch_template(LaunchTemplateId=id_)
            else:
                client.delete_security_group(GroupId=id_)

    def _all_things(self) -> dict[str, Any]:
        templates = every(self.ec2, "LaunchTemplates")
        groups = every(self.ec2, "SecurityGroups")
        return {
            **{one["LaunchTemplateId"]: one for one in templates},
            **{one["GroupId"]: one for one in groups},
        }

    def _plant_instance(self, owner: dict[str, str]) -> None:
        (instance,) = self.ec2.client.run_instances(
            ImageId=IMAGE,
            InstanceType="g4dn.xlarge",
            MinCount=1,
            MaxCount=1,
            TagSpecifications=_specification("instance", owner),
        )["Instances"]
        self.planted.add(instance["InstanceId"])

    def _plant_template(self, owner: dict[str, str]) -> None:
        made = self.ec2.client.create_launch_template(
            LaunchTemplateName=f"somebody-elses-{uuid.uuid4().hex[:8]}",
            LaunchTemplateData={"ImageId": IMAGE},
            TagSpecifications=_specification("launch-template", owner),
        )["LaunchTemplate"]
        self.planted.add(made["LaunchTemplateId"])

    def _plant_group(self, owner: dict[str, str]) -> None:
        made = self.ec2.client.create_security_group(
            GroupName=f"somebody-elses-{uuid.uuid4().hex[:8]}",
            Description="nothing of ours",
            TagSpecifications=_specification("security-group", owner),
        )
        self.planted.add(made["GroupId"])


def _specification(kind: str, owner: dict[str, str]) -> list[dict[str, Any]]:
    own = [{"Key": key, "Value": value} for key, value in owner.items()]
    own.append({"Key": "Name", "Value": "somebody-elses"})
    return [{"ResourceType": kind, "Tags": own}]


def _face(instance: Instance) -> Any:
    groups = [group["GroupId"] for group in instance["SecurityGroups"]]
    return instance["State"]["Name"], tags(instance), groups
