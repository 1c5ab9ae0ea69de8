"""An instance that the project did not create."""

import uuid
from dataclasses import dataclass
from typing import Any

from .ec2 import CLUSTER, WORKSPACE, Ec2, tags

IMAGE = "ami-00000000000c0de01"
NAME = "somebody-elses"


@dataclass
class Bystander:
    ec2: Ec2
    id: str
    # The security groups at the launch, by id.
    groups: dict[str, Any]

    @classmethod
    def launch(cls, ec2: Ec2) -> "Bystander":
        group = ec2.client.create_security_group(
            GroupName=f"{NAME}-{uuid.uuid4().hex[:8]}",
            Description="nothing of ours",
        )["GroupId"]
        (instance,) = ec2.client.run_instances(
            ImageId=IMAGE,
            SecurityGroupIds=[group, _default_group(ec2)],
            InstanceType="g4dn.xlarge",
            MinCount=1,
            MaxCount=1,
            TagSpecifications=[
                {
                    "ResourceType": "instance",
                    "Tags": [
                        {"Key": "Name", "Value": NAME},
                        # These tags look like ours, but name another control plane.
                        {"Key": "gpu.platform.acme.io:pool", "Value": "else/where"},
                        {"Key": CLUSTER, "Value": "another"},
                        {"Key": WORKSPACE, "Value": "else/where"},
                    ],
                }
            ],
        )["Instances"]
        return cls(ec2, instance["InstanceId"], _groups(ec2))

    def check(self) -> None:
        instance = self.ec2.instance(self.id)
        assert instance["State"]["Name"] in ("pending", "running"), instance["State"]
        assert tags(instance)["Name"] == NAME
        now = _groups(self.ec2)
        # Each test process has a bystander of its own.
        known = self.groups.keys()
        added = {id_ for id_, group in now.items() if not _is_bystanders(group)} - known
        assert not added, f"groups without our tags appeared: {added}"
        same = {id_: group for id_, group in now.items() if id_ in known}
        assert same == self.groups, "a group of somebody else changed"


def _default_group(ec2: Ec2) -> str:
    (group,) = ec2.client.describe_security_groups(
        Filters=[{"Name": "group-name", "Values": ["default"]}]
    )["SecurityGroups"]
    return str(group["GroupId"])


def _is_bystanders(group: Any) -> bool:
    return str(group["GroupName"]).startswith(NAME)


def _groups(ec2: Ec2) -> dict[str, Any]:
    """Every security group without our tags, with its rules, by id."""
    groups = ec2.client.describe_security_groups()["SecurityGroups"]
    kept = ("GroupName", "IpPermissions", "IpPermissionsEgress")
    return {
        group["GroupId"]: {key: group[key] for key in kept}
        for group in groups
        if not tags(group).keys() & {CLUSTER, WORKSPACE}
    }
