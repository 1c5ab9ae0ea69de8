"""The metadata at 169.254.169.254, as AWS documents it."""

import json

import pytest

from booting import METADATA, USER_DATA, Booted, Cloud, metadata
from machines.waiting import until

TAGS = "meta-data/tags/instance"
ACTION = "meta-data/spot/instance-action"
REBALANCE = "meta-data/events/recommendations/rebalance"


def test_it_says_which_instance_this_is_and_where(booted: Booted) -> None:
    shown, data = booted.shown(), "meta-data"
    told = {
        f"{data}/instance-id": booted.id,
        f"{data}/instance-type": "g5.xlarge",
        f"{data}/placement/availability-zone": shown["Placement"]["AvailabilityZone"],
        f"{data}/placement/region": "us-east-1",
        f"{data}/public-ipv4": shown["PublicIpAddress"],
        f"{data}/local-ipv4": shown["PrivateIpAddress"],
        f"{data}/placement": "availability-zone\nregion",
    }
    assert metadata(booted, *told) == told


def test_user_data_is_what_was_given(booted: Booted) -> None:
    (told,) = metadata(booted, "user-data").values()
    assert told == USER_DATA.format(key=booted.cloud.key)


REFUSED = f"""{METADATA}
print(json.dumps([
    ask("meta-data/instance-id"),
    ask("meta-data/instance-id", X_aws_ec2_metadata_token="made up"),
    ask("api/token", "PUT"),
    ask("api/token", "PUT", X_aws_ec2_metadata_token_ttl_seconds="21601"),
    ask("api/token", "PUT", X_aws_ec2_metadata_token_ttl_seconds="60",
        X_Forwarded_For="192.0.2.1"),
    ask("meta-data/nothing", X_aws_ec2_metadata_token=token),
]))
"""


def test_without_a_token_of_version_2_nothing_is_told(booted: Booted) -> None:
    assert booted.python(REFUSED) == [401, 401, 400, 400, 403, 404]


def test_tags_are_told_as_they_are_now(booted: Booted) -> None:
    ec2 = booted.cloud.ec2
    ec2.create_tags(Resources=[booted.id], Tags=[{"Key": "a:b", "Value": "c d"}])
    told = metadata(booted, TAGS, f"{TAGS}/a:b")
    assert told == {TAGS: "a:b", f"{TAGS}/a:b": "c d"}
    ec2.delete_tags(Resources=[booted.id], Tags=[{"Key": "a:b"}])
    assert metadata(booted, f"{TAGS}/a:b") == {f"{TAGS}/a:b": 404}


def test_tags_are_not_told_unless_the_launch_asks_for_it(booted: Booted) -> None:
    ec2 = booted.cloud.ec2
    change = ec2.modify_instance_metadata_options
    change(InstanceId=booted.id, InstanceMetadataTags="disabled")
    try:
        assert metadata(booted, TAGS) == {TAGS: 404}
    finally:
        change(InstanceId=booted.id, InstanceMetadataTags="enabled")


def test_no_role_no_credentials(booted: Booted) -> None:
    assert metadata(booted, "meta-data/iam") == {"meta-data/iam": 404}


@pytest.fixture(scope="module")
def spot(cloud: Cloud) -> Booted:
    return cloud.boot(InstanceMarketOptions={"MarketType": "spot"})


@pytest.mark.thorough
def test_a_rebalance_recommendation_is_told(spot: Booted) -> None:
    assert metadata(spot, REBALANCE) == {REBALANCE: 404}
    spot.cloud.control.ask("POST", "/rebalance", {"instanceId": spot.id})
    (told,) = metadata(spot, REBALANCE).values()
    assert list(json.loads(told)) == ["noticeTime"]


@pytest.mark.thorough
def test_an_interruption_is_told_before_the_machine_ends(spot: Booted) -> None:
    assert metadata(spot, ACTION) == {ACTION: 404}
    notice = {"instanceId": spot.id, "noticeSeconds": 8}
    spot.cloud.control.ask("POST", "/interrupt", notice)
    (told,) = metadata(spot, ACTION).values()
    assert json.loads(told)["action"] == "terminate"
    assert spot.state == "running"
    until("the end", lambda: spot.state == "terminated")
