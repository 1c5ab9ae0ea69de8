"""The role of an instance may only write two tags of this instance."""

import json
from typing import Any

import boto3
import pytest
from botocore.config import Config

from booting import Booted, Cloud, metadata
from conftest import REGION, refused

# These tests are slow: each boots machines of its own.
pytestmark = pytest.mark.thorough

ACTIVITY = {"Key": "gpu.platform.acme.io:activity", "Value": "v1 at=now"}
HOST_KEY = {"Key": "gpu.platform.acme.io:host-key", "Value": "ssh-ed25519 AAAA"}
ROLE = "workspace"
PATH = f"meta-data/iam/security-credentials/{ROLE}"


@pytest.fixture(scope="module")
def own(cloud: Cloud) -> Booted:
    """An instance with a role."""
    iam = cloud.control.client("iam")
    trusted = {"Version": "2012-10-17", "Statement": []}
    iam.create_role(RoleName=ROLE, AssumeRolePolicyDocument=json.dumps(trusted))
    iam.create_instance_profile(InstanceProfileName=ROLE)
    iam.add_role_to_instance_profile(InstanceProfileName=ROLE, RoleName=ROLE)
    return cloud.boot(IamInstanceProfile={"Name": ROLE})


@pytest.fixture
def session(own: Booted) -> dict[str, Any]:
    """The credentials that the machine reads from its metadata service."""
    (told,) = metadata(own, PATH).values()
    return dict(json.loads(told))


def _client(cloud: Cloud, session: dict[str, Any], service: str = "ec2") -> Any:
    return boto3.client(
        service,
        region_name=REGION,
        endpoint_url=cloud.control.url,
        aws_access_key_id=session["AccessKeyId"],
        aws_secret_access_key=session["SecretAccessKey"],
        aws_session_token=session["Token"],
        config=Config(retries={"total_max_attempts": 1}),
    )


def test_the_metadata_service_names_the_role_and_gives_its_session(
    own: Booted, session: dict[str, Any]
) -> None:
    folder = PATH.removesuffix(f"/{ROLE}")
    assert metadata(own, folder) == {folder: ROLE}
    assert (session["Code"], session["Type"]) == ("Success", "AWS-HMAC")
    who = _client(own.cloud, session, "sts").get_caller_identity()["Arn"]
    assert who.endswith(f":assumed-role/{ROLE}/{own.id}")


def test_it_may_write_both_tags_on_its_instance(
    own: Booted, session: dict[str, Any]
) -> None:
    ec2 = _client(own.cloud, session)
    ec2.create_tags(Resources=[own.id], Tags=[ACTIVITY, HOST_KEY])
    tags = own.shown()["Tags"]
    assert ACTIVITY in tags and HOST_KEY in tags


def test_it_may_write_no_other_tag_and_on_no_other_instance(
    own: Booted, booted: Booted, session: dict[str, Any]
) -> None:
    ec2 = _client(own.cloud, session)
    other = {"Key": "Name", "Value": "mine"}
    for resources, tags in [
        ([own.id], [other]),
        ([own.id], [ACTIVITY, other]),
        ([booted.id], [ACTIVITY]),
        ([own.id, booted.id], [ACTIVITY]),
    ]:
        status, code, message = refused(ec2.create_tags, Resources=resources, Tags=tags)
        assert (status, code) == (403, "UnauthorizedOperation")
        assert "ec2:CreateTags" in message and own.id in message
    assert not booted.shown().get("Tags")


def test_it_may_call_nothing_else(own: Booted, session: dict[str, Any]) -> None:
    ec2 = _client(own.cloud, session)
    for call, request in [
        (ec2.describe_instances, {}),
        (ec2.terminate_instances, {"InstanceIds": [own.id]}),
        (ec2.delete_tags, {"Resources": [own.id], "Tags": [{"Key": "Name"}]}),
    ]:
        status, code, _ = refused(call, **request)
        assert (status, code) == (403, "UnauthorizedOperation")
    assert own.state == "running"


def test_a_key_without_its_session_token_is_nobody(
    own: Booted, session: dict[str, Any]
) -> None:
    ec2 = _client(own.cloud, session | {"Token": "another"})
    request = {"Resources": [own.id], "Tags": [ACTIVITY]}
    assert refused(ec2.create_tags, **request)[1] == "AuthFailure"


CALL = """
import json, os, sys, urllib.parse, urllib.request
url = open("/proc/1/environ").read() and os.popen(
    "systemctl show-environment").read()
endpoint = dict(l.split("=", 1) for l in url.splitlines() if "=" in l)
form = {"Action": "CreateTags", "Version": "2016-11-15", "ResourceId.1": sys.argv[1],
        "Tag.1.Key": "gpu.platform.acme.io:activity", "Tag.1.Value": "by itself"}
scope = f"{sys.argv[2]}/20260101/us-east-1/ec2/aws4_request"
headers = {"Authorization": f"AWS4-HMAC-SHA256 Credential={scope}, Signature=00",
           "X-Amz-Security-Token": sys.argv[3]}
request = urllib.request.Request(endpoint["AWS_ENDPOINT_URL"], headers=headers,
                                 data=urllib.parse.urlencode(form).encode())
print(json.dumps(urllib.request.urlopen(request, timeout=5).status))
"""


def test_the_machine_reaches_ec2_where_its_units_are_told(
    own: Booted, session: dict[str, Any]
) -> None:
    key, token = session["AccessKeyId"], session["Token"]
    assert own.python(CALL, own.id, key, f"'{token}'") == 200
    assert {**ACTIVITY, "Value": "by itself"} in own.shown()["Tags"]
