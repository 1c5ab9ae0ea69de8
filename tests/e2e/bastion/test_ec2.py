"""A person works on an EC2 instance, whose port 22 is open to the bastion only."""

import subprocess
from collections.abc import Callable
from pathlib import Path

from bastion.conftest import seen_by_machines
from bastion.door import Door, Visitor
from cluster.workspaces import Workspaces
from environment.ec2 import Ec2


def test_a_person_enters_an_instance_through_the_bastion(
    alice: Workspaces,
    enter: Callable[..., Visitor],
    door: Door,
    tmp_path: Path,
) -> None:
    visitor = enter(alice)
    visitor.says(
        *("create", "vm", "--instance-type", "g4dn.xlarge"),
        *("--region", "us-east-1", "--opencv", "4.8.0"),
    )
    inside = visitor.inside("vm", visitor.workspace_key("vm", tmp_path))
    ran = subprocess.run([*inside, "id -un"], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "developer\n"), ran.stderr
    assert visitor.says("ssh", "vm", "--", "id", "-un") == "developer\n"

    ec2 = Ec2("us-east-1")
    (machine,) = ec2.live(alice.namespace)
    records = [one for one in door.records() if one.get("user") == alice.owner]
    opened = [one for one in records if one["event"] == "connection.opened"]
    assert {one["node"] for one in opened} == {machine["InstanceId"]}
    assert {one["address"] for one in opened} == {f"{machine['PublicIpAddress']}:22"}
    groups = [one["GroupId"] for one in machine["SecurityGroups"]]
    found = ec2.client.describe_security_groups(GroupIds=groups)["SecurityGroups"]
    networks = {
        network["CidrIp"]
        for group in found
        for rule in group["IpPermissions"]
        if rule.get("FromPort") == 22
        for network in rule["IpRanges"]
    }
    assert networks == {seen_by_machines()}
    visitor.says("delete", "vm", "--yes")
