"""Changes of an instance's attributes: "ModifyInstanceAttribute"."""

import base64

import pytest
from conftest import refused, shown


@pytest.fixture
def instance(emulator, launch):
    (launched,) = launch(UserData="#cloud-config\n# first\n")
    emulator.advance(2)
    return launched["InstanceId"]


def user_data(ec2, instance):
    answer = ec2.describe_instance_attribute(InstanceId=instance, Attribute="userData")
    return base64.b64decode(answer["UserData"]["Value"])


def stop(emulator, ec2, instance):
    ec2.stop_instances(InstanceIds=[instance])
    emulator.advance(1)


def test_user_data_of_a_stopped_instance_can_be_replaced(emulator, ec2, instance):
    assert user_data(ec2, instance) == b"#cloud-config\n# first\n"
    stop(emulator, ec2, instance)
    ec2.modify_instance_attribute(
        InstanceId=instance, UserData={"Value": b"#cloud-config\n# second\n"}
    )
    assert user_data(ec2, instance) == b"#cloud-config\n# second\n"


@pytest.mark.parametrize(
    "change",
    [
        {"UserData": {"Value": b"#cloud-config\n"}},
        {"InstanceType": {"Value": "g5.2xlarge"}},
        {"Attribute": "instanceType", "Value": "g5.2xlarge"},
    ],
    ids=lambda change: "-".join(change),
)
def test_a_running_instance_keeps_its_type_and_user_data(ec2, instance, change):
    status, code, message = refused(
        ec2.modify_instance_attribute, InstanceId=instance, **change
    )
    assert (status, code) == (400, "IncorrectInstanceState")
    assert message == f"The instance '{instance}' is not in the 'stopped' state."


def test_a_stopped_instance_starts_as_another_type(emulator, ec2, instance):
    stop(emulator, ec2, instance)
    ec2.modify_instance_attribute(
        InstanceId=instance, InstanceType={"Value": "g5.2xlarge"}
    )
    ec2.start_instances(InstanceIds=[instance])
    emulator.advance(2)
    (seen,) = shown(ec2, InstanceIds=[instance])
    assert (seen["InstanceType"], seen["State"]["Name"]) == ("g5.2xlarge", "running")


def test_groups_and_protections_change_while_it_runs(ec2, instance):
    group = ec2.create_security_group(GroupName="g", Description="d")["GroupId"]
    ec2.modify_instance_attribute(InstanceId=instance, Groups=[group])
    ec2.modify_instance_attribute(
        InstanceId=instance, DisableApiTermination={"Value": True}
    )
    (seen,) = shown(ec2, InstanceIds=[instance])
    assert [one["GroupId"] for one in seen["SecurityGroups"]] == [group]
    code = refused(ec2.terminate_instances, InstanceIds=[instance])[1]
    assert code == "OperationNotPermitted"


def console(ec2, instance):
    return ec2.get_console_output(InstanceId=instance).get("Output", "")


def test_an_instance_without_a_machine_shows_on_its_console_what_a_test_sets(
    emulator, ec2, launch
):
    emulator.settings(console="setup done\n")
    (launched,) = launch()
    instance = launched["InstanceId"]
    assert console(ec2, instance) == "", "it has not run"
    emulator.advance(2)
    assert console(ec2, instance) == "setup done\n"
    emulator.ask("POST", "/console", {"instanceId": instance, "text": "panic"})
    assert console(ec2, instance) == "panic"
    (other,) = launch()
    emulator.advance(2)
    assert console(ec2, other["InstanceId"]) == "setup done\n"


@pytest.mark.parametrize(
    ("document", "named"),
    [({"text": 7}, "text"), ({"text": "x", "instanceId": "i-none"}, "instanceId")],
)
def test_a_console_is_refused_with_its_field(emulator, document, named):
    status, message = emulator.refusal("POST", "/console", document)
    assert status in (400, 404)
    assert named in message
