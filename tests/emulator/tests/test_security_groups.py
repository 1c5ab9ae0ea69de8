"""Security groups: duplicates, dependencies, filters."""

import pytest
from conftest import refused

SSH = {
    "IpProtocol": "tcp",
    "FromPort": 22,
    "ToPort": 22,
    "IpRanges": [{"CidrIp": "203.0.113.0/24"}],
}


@pytest.fixture
def group(ec2):
    return ec2.create_security_group(
        GroupName="pool-a",
        Description="SSH in",
        TagSpecifications=[
            {
                "ResourceType": "security-group",
                "Tags": [{"Key": "pool", "Value": "a"}],
            }
        ],
    )["GroupId"]


def test_a_name_is_taken_once_in_a_network(ec2, group):
    status, code, message = refused(
        ec2.create_security_group, GroupName="pool-a", Description="again"
    )
    assert (status, code) == (400, "InvalidGroup.Duplicate")
    assert message.startswith("The security group 'pool-a' already exists for VPC")


def test_the_same_name_is_free_in_another_network(ec2, group):
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    other = ec2.create_security_group(GroupName="pool-a", Description="d", VpcId=vpc)
    assert other["GroupId"] != group


def test_a_group_is_found_by_name_id_network_and_tag(ec2, group):
    (shown,) = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"]
    for name, value in {
        "group-name": "pool-a",
        "group-id": group,
        "tag:pool": "a",
        "tag-key": "pool",
    }.items():
        answer = ec2.describe_security_groups(
            Filters=[
                {"Name": name, "Values": [value]},
                {"Name": "vpc-id", "Values": [shown["VpcId"]]},
            ]
        )
        assert [one["GroupId"] for one in answer["SecurityGroups"]] == [group], name


def test_an_unknown_filter_and_an_unknown_group(ec2):
    status, code, _ = refused(
        ec2.describe_security_groups, Filters=[{"Name": "colour", "Values": ["red"]}]
    )
    assert (status, code) == (400, "InvalidParameterValue")
    unknown = {"GroupId": "sg-0123456789abcdef0"}
    for call, request in (
        (ec2.describe_security_groups, {"GroupIds": ["sg-0123456789abcdef0"]}),
        (ec2.delete_security_group, unknown),
        (
            ec2.authorize_security_group_ingress,
            {**unknown, "IpPermissions": [SSH]},
        ),
    ):
        assert refused(call, **request)[:2] == (400, "InvalidGroup.NotFound")


def test_a_rule_is_added_once(ec2, group):
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[SSH])
    status, code, _ = refused(
        ec2.authorize_security_group_ingress, GroupId=group, IpPermissions=[SSH]
    )
    assert (status, code) == (400, "InvalidPermission.Duplicate")


def test_one_duplicate_keeps_all_rules_of_the_request_out(ec2, group):
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[SSH])
    https = {**SSH, "FromPort": 443, "ToPort": 443}
    refused(
        ec2.authorize_security_group_ingress, GroupId=group, IpPermissions=[https, SSH]
    )
    (shown,) = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"]
    assert [one["FromPort"] for one in shown["IpPermissions"]] == [22]


def test_the_answer_lists_every_rule_added(ec2, group):
    https = {**SSH, "FromPort": 443, "ToPort": 443}
    within = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}
    rules = ec2.authorize_security_group_ingress(
        GroupId=group, IpPermissions=[SSH, https, within]
    )["SecurityGroupRules"]
    assert len({one["SecurityGroupRuleId"] for one in rules}) == 3


def test_a_group_in_use_cannot_be_deleted(emulator, ec2, launch, group):
    (instance,) = launch(SecurityGroupIds=[group])
    assert refused(ec2.delete_security_group, GroupId=group)[:2] == (
        400,
        "DependencyViolation",
    )
    ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
    # An instance that is shutting down still uses its group.
    assert refused(ec2.delete_security_group, GroupId=group)[1] == "DependencyViolation"
    emulator.advance(1)
    ec2.delete_security_group(GroupId=group)
    assert refused(ec2.describe_security_groups, GroupIds=[group])[1] == (
        "InvalidGroup.NotFound"
    )


def test_a_group_that_another_one_names_cannot_be_deleted(ec2, group):
    other = ec2.create_security_group(GroupName="other", Description="d")["GroupId"]
    within = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}
    ec2.authorize_security_group_ingress(GroupId=other, IpPermissions=[within])
    assert refused(ec2.delete_security_group, GroupId=group)[1] == "DependencyViolation"


def test_a_group_that_names_itself_can_be_deleted(ec2, group):
    within = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[within])
    ec2.delete_security_group(GroupId=group)


def test_names_that_differ_by_case_only_are_the_same_name(ec2, group):
    status, code, _ = refused(
        ec2.create_security_group, GroupName="Pool-A", Description="again"
    )
    assert (status, code) == (400, "InvalidGroup.Duplicate")


def test_revoking_unknown_rules_is_no_error_in_a_default_network(ec2, group):
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[SSH])
    two = [{"CidrIp": "203.0.113.0/24"}, {"CidrIp": "198.51.100.0/24"}]
    answer = ec2.revoke_security_group_ingress(
        GroupId=group, IpPermissions=[{**SSH, "IpRanges": two}]
    )
    (unknown,) = answer["UnknownIpPermissions"]
    assert unknown["IpRanges"] == [{"CidrIp": "198.51.100.0/24"}]
    assert (unknown["FromPort"], unknown["ToPort"]) == (22, 22)
    (shown,) = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"]
    assert shown["IpPermissions"] == []


def test_a_rule_that_is_not_there_cannot_be_revoked_in_another_network(ec2):
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    group = ec2.create_security_group(GroupName="b", Description="d", VpcId=vpc)
    group = group["GroupId"]
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[SSH])
    two = [{"CidrIp": "203.0.113.0/24"}, {"CidrIp": "198.51.100.0/24"}]
    status, code, _ = refused(
        ec2.revoke_security_group_ingress,
        GroupId=group,
        IpPermissions=[{**SSH, "IpRanges": two}],
    )
    assert (status, code) == (400, "InvalidPermission.NotFound")
    (shown,) = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"]
    assert len(shown["IpPermissions"]) == 1


def test_a_rule_is_revoked_by_its_id(ec2, group):
    (rule,) = ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[SSH])[
        "SecurityGroupRules"
    ]
    unknown = {"GroupId": group, "SecurityGroupRuleIds": ["sgr-0123456789abcdef0"]}
    status, code, _ = refused(ec2.revoke_security_group_ingress, **unknown)
    assert (status, code) == (400, "InvalidSecurityGroupRuleId.NotFound")
    ec2.revoke_security_group_ingress(
        GroupId=group, SecurityGroupRuleIds=[rule["SecurityGroupRuleId"]]
    )
    (shown,) = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"]
    assert shown["IpPermissions"] == []


def test_the_network_of_a_rule_has_no_host_bits(ec2, group):
    ranges = [{"CidrIp": "100.68.0.18/18"}]
    ec2.authorize_security_group_ingress(
        GroupId=group, IpPermissions=[{**SSH, "IpRanges": ranges}]
    )
    (shown,) = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"]
    (permission,) = shown["IpPermissions"]
    assert permission["IpRanges"] == [{"CidrIp": "100.68.0.0/18"}]
    ec2.revoke_security_group_ingress(
        GroupId=group, IpPermissions=[{**SSH, "IpRanges": ranges}]
    )
    (shown,) = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"]
    assert shown["IpPermissions"] == []


def test_networks_and_groups_of_one_port_are_shown_together(ec2, group):
    bastion = ec2.create_security_group(GroupName="bastion", Description="d")
    bastion = bastion["GroupId"]
    port = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22}
    pair = {**port, "UserIdGroupPairs": [{"GroupId": bastion}]}
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[SSH, pair])

    def shown():
        (listed,) = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"]
        (permission,) = listed["IpPermissions"]
        pairs = [
            (one["GroupId"], one["UserId"]) for one in permission["UserIdGroupPairs"]
        ]
        assert permission["IpRanges"] == SSH["IpRanges"]
        return pairs, listed["OwnerId"]

    pairs, account = shown()
    assert pairs == [(bastion, account)]
    ec2.revoke_security_group_ingress(GroupId=group, IpPermissions=[pair])
    assert shown() == ([], account)


def test_a_rule_about_a_group_that_does_not_exist_is_refused(ec2, group):
    port = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22}
    pair = {**port, "UserIdGroupPairs": [{"GroupId": "sg-00000000000000000"}]}
    answer = refused(
        ec2.authorize_security_group_ingress, GroupId=group, IpPermissions=[SSH, pair]
    )
    assert answer[:2] == (400, "InvalidGroup.NotFound")
    (shown,) = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"]
    assert shown["IpPermissions"] == []
