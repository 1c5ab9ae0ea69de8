"""The checks of the storm find planted errors."""

import uuid
from typing import Any

from environment.bystander import IMAGE
from environment.cluster import Cluster
from environment.ec2 import CLUSTER, POOL, Ec2
from environment.emulator import Emulator

from .account import LAUNCH, POOL_UID, Account, doubles
from .fleet import Fleet, Wanted
from .journal import Journal
from .strangers import Strangers
from .watch import Warned, Watch


def test_what_no_pool_accounts_for_is_seen(account: Account, ec2: Ec2) -> None:
    uid = str(uuid.uuid4())
    before = set(account.leaks((), ()))
    instance = launch(account, uid)
    template = ec2.client.create_launch_template(
        LaunchTemplateName=uid,
        LaunchTemplateData={"ImageId": IMAGE},
        TagSpecifications=marks("launch-template", account, uid),
    )["LaunchTemplate"]["LaunchTemplateId"]
    group = ec2.client.create_security_group(
        GroupName=uid,
        Description="leaked",
        TagSpecifications=marks("security-group", account, uid),
    )["GroupId"]
    leaked = set(account.leaks((), ())) - before
    for id_ in (instance, template, group):
        assert sum(id_ in one for one in leaked) == 1, leaked
    assert not any(uid in one for one in account.leaks({uid}, ()))
    ec2.client.terminate_instances(InstanceIds=[instance])
    ec2.client.delete_launch_template(LaunchTemplateId=template)
    ec2.client.delete_security_group(GroupId=group)


def test_an_instance_too_many_is_seen(
    cluster: Cluster, account: Account, ec2: Ec2
) -> None:
    uid = str(uuid.uuid4())
    fleet = Fleet(cluster, "nowhere", {}, {})
    spec = {"size": {"minimum": 1, "maximum": 1, "idle": 1}}
    fleet.expect(Wanted("pool", uid, spec, ceiling=1))
    watch = Watch(account, fleet, Strangers(ec2), Warned(), Journal(0))
    first = launch(account, uid)
    watch.look()
    assert not watch.doubled
    second = launch(account, uid)
    watch.look()
    assert set(watch.doubled) == {uid}
    ec2.client.terminate_instances(InstanceIds=[first, second])


def test_a_launch_that_came_twice_is_seen(account: Account, ec2: Ec2) -> None:
    uid = str(uuid.uuid4())
    ids = [launch(account, uid) for _ in range(2)]
    launched = account.launched({uid})
    once = [call(account, uid, "token", 2)]
    assert doubles(launched, once) == []
    short = [call(account, uid, "token", 1)]
    assert len(doubles(launched, short)) == 1
    twice = [*once, call(account, uid, "another token", 2)]
    assert len(doubles(launched, twice)) == 1
    assert len(doubles(launched, [])) == 1
    ec2.client.terminate_instances(InstanceIds=ids)


def test_a_change_of_somebody_elses_is_seen(
    account: Account, ec2: Ec2, emulator: Emulator
) -> None:
    strangers = Strangers(ec2)
    strangers.plant(account.cluster, "team", "pool", str(uuid.uuid4()))
    strangers.settle(0)
    ids = sorted(strangers.instances)
    assert strangers.changes(account.live()) == strangers.changed_things() == []
    emulator.terminate(ids[0])
    ec2.client.create_tags(
        Resources=[ids[1]], Tags=[{"Key": "Name", "Value": "taken over"}]
    )
    assert sorted(strangers.changes(account.live())) == sorted(ids[:2])
    group = next(id_ for id_ in strangers.things if id_.startswith("sg-"))
    everywhere = [{"CidrIp": "198.51.100.0/24"}]
    ec2.client.authorize_security_group_ingress(
        GroupId=group,
        IpPermissions=[
            {
                "IpProtocol": "tcp",
                "FromPort": 22,
                "ToPort": 22,
                "IpRanges": everywhere,
            }
        ],
    )
    assert strangers.changed_things() == [group]
    strangers.go()


def launch(account: Account, uid: str) -> str:
    (instance,) = account.ec2.client.run_instances(
        ImageId=IMAGE,
        InstanceType="g4dn.xlarge",
        MinCount=1,
        MaxCount=1,
        TagSpecifications=marks("instance", account, uid),
    )["Instances"]
    return str(instance["InstanceId"])


def marks(kind: str, account: Account, uid: str) -> list[dict[str, Any]]:
    own = {CLUSTER: account.cluster, POOL: "team/pool", POOL_UID: uid, LAUNCH: "1"}
    listed = [{"Key": key, "Value": value} for key, value in own.items()]
    return [{"ResourceType": kind, "Tags": listed}]


def call(account: Account, uid: str, token: str, count: int) -> dict[str, Any]:
    """A call of CreateFleet, as the emulator records it."""
    return {
        "parameters": {
            "ClientToken": token,
            "TargetCapacitySpecification": {"TotalTargetCapacity": count},
            "TagSpecifications": marks("instance", account, uid),
        }
    }
