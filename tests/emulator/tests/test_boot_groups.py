"""Security groups let in only the networks and groups that their rules name."""

from machines.waiting import until

import pytest

from booting import Booted, Cloud, ssh_from

# These tests are slow: each boots machines of its own.
pytestmark = pytest.mark.thorough


def test_without_a_rule_nobody_gets_in_and_a_rule_admits_at_once(cloud: Cloud) -> None:
    group = cloud.group()
    instance = cloud.boot(ready=False, SecurityGroupIds=[group])
    instance.await_state("running")
    until("the keys", lambda: instance.known_hosts() != [])
    assert instance.ssh("true", check=False) is None
    cloud.ec2.authorize_security_group_ingress(**ssh_from(group, cloud.here))
    until("a login", lambda: instance.ssh("true", check=False) is not None)
    cloud.ec2.revoke_security_group_ingress(**ssh_from(group, cloud.here))
    assert instance.ssh("true", check=False) is None
    elsewhere = ssh_from(group, "203.0.113.0/24")
    cloud.ec2.authorize_security_group_ingress(**elsewhere)
    assert instance.ssh("true", check=False) is None
    instance.terminate()


def test_members_of_a_group_reach_each_other_where_a_rule_says_so(
    cloud: Cloud, booted: Booted
) -> None:
    group = cloud.group(cloud.here)
    other = cloud.boot(SecurityGroupIds=[group])
    script = f"timeout 2 bash -c '</dev/tcp/{booted.address}/22' || echo refused"
    assert "refused" in other.says(script)
    (own,) = [one["GroupId"] for one in booted.shown()["SecurityGroups"]]
    rule = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22}
    pair = {**rule, "UserIdGroupPairs": [{"GroupId": group}]}
    cloud.ec2.authorize_security_group_ingress(GroupId=own, IpPermissions=[pair])
    assert other.says(script) == ""
    cloud.ec2.revoke_security_group_ingress(GroupId=own, IpPermissions=[pair])
    other.terminate()
