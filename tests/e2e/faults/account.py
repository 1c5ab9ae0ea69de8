"""The resources in the AWS account, and those that should not exist, asked of EC2."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from environment.ec2 import CLUSTER, LIVE, Ec2, Instance, tags

POOL_UID = "gpu.platform.acme.io:pool-uid"
LAUNCH = "gpu.platform.acme.io:launch"

Call = dict[str, Any]
Resource = dict[str, Any]


@dataclass
class Account:
    """The part of the account that carries the tag of one control plane."""

    ec2: Ec2
    cluster: str

    def live(self) -> list[Instance]:
        """Every instance that EC2 bills, of any owner."""
        states = {"Name": "instance-state-name", "Values": list(LIVE)}
        return self.ec2.instances(states)

    def is_ours(self, resource: Resource) -> bool:
        return tags(resource).get(CLUSTER) == self.cluster

    def things(self) -> dict[str, Resource]:
        """Our resources by id. Instances that ended are not among them."""
        ours = [{"Name": f"tag:{CLUSTER}", "Values": [self.cluster]}]
        groups = every(self.ec2, "SecurityGroups", ours)
        templates = every(self.ec2, "LaunchTemplates", ours)
        volumes = every(self.ec2, "Volumes", ours)
        live = [one for one in self.live() if self.is_ours(one)]
        return {
            **{one["InstanceId"]: one for one in live},
            **{one["LaunchTemplateId"]: one for one in templates},
            **{one["GroupId"]: one for one in groups},
            **{one["VolumeId"]: one for one in volumes},
        }

    def leaks(self, pools: Collection[str], planted: Collection[str]) -> list[str]:
        """Our resources that belong to none of `pools`, given by UID."""
        return [
            f"{id_} is of no pool: {tags(thing)}"
            for id_, thing in self.things().items()
            if tags(thing).get(POOL_UID) not in pools and id_ not in planted
        ]

    def launched(self, pools: Collection[str]) -> list[Instance]:
        """The instances of `pools`, given by UID. EC2 shows an instance that ended for
        an hour more."""
        ours = {"Name": f"tag:{CLUSTER}", "Values": [self.cluster]}
        found = self.ec2.instances(ours)
        return [one for one in found if tags(one).get(POOL_UID) in pools]


_LISTS = {
    "SecurityGroups": "describe_security_groups",
    "LaunchTemplates": "describe_launch_templates",
    "Volumes": "describe_volumes",
}


def every(ec2: Ec2, kind: str, filters: Sequence[Any] = ()) -> list[Resource]:
    """All pages of a list."""
    pages = ec2.client.get_paginator(_LISTS[kind]).paginate(Filters=list(filters))
    return [one for page in pages for one in page[kind]]


def doubles(instances: list[Instance], calls: list[Call]) -> list[str]:
    """Launches with more instances than were requested, with several tokens, or
    without a request; and tokens of several launches. `calls` are those of
    CreateFleet."""
    tokens: dict[tuple[str, str], set[str]] = {}
    counts: dict[tuple[str, str], int] = {}
    for call in calls:
        asked = call["parameters"]
        launch = _launch(_tags_of_instances(asked))
        tokens.setdefault(launch, set()).add(asked.get("ClientToken", ""))
        counts[launch] = asked["TargetCapacitySpecification"]["TotalTargetCapacity"]
    found = Counter(_launch(tags(instance)) for instance in instances)
    of_tokens = Counter(token for own in tokens.values() for token in own)
    return [
        *(
            f"launch {launch} was asked for by {len(own)} tokens"
            for launch, own in tokens.items()
            if len(own) > 1
        ),
        *(
            f"token {token} is of {n} launches"
            for token, n in of_tokens.items()
            if n > 1
        ),
        *(
            f"launch {launch} of {counts.get(launch, 0)} brought {number}"
            for launch, number in found.items()
            if number > counts.get(launch, 0)
        ),
    ]


def _launch(own: dict[str, str]) -> tuple[str, str]:
    return own.get(POOL_UID, ""), own.get(LAUNCH, "")


def _tags_of_instances(asked: dict[str, Any]) -> dict[str, str]:
    for one in asked.get("TagSpecifications", []):
        if one["ResourceType"] == "instance":
            return tags(one)
    return {}
