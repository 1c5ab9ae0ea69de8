"""Accounts are separate, and a role gives access from one to another."""

import boto3
from botocore.config import Config
from conftest import refused, shown

OTHER = "111122223333"
NEWEST = (
    "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/"
    "latest/ami-id"
)


def assume(emulator, clients):
    credentials = clients["sts"].assume_role(
        RoleArn=f"arn:aws:iam::{OTHER}:role/pools", RoleSessionName="test"
    )["Credentials"]

    def client(service):
        return boto3.client(
            service,
            region_name="us-east-1",
            endpoint_url=emulator.url,
            aws_access_key_id=credentials["AccessKeyId"],
            aws_secret_access_key=credentials["SecretAccessKey"],
            aws_session_token=credentials["SessionToken"],
            config=Config(retries={"total_max_attempts": 1}),
        )

    return client


def test_an_assumed_role_sees_its_own_account_only(emulator, ec2, clients, launch):
    there = assume(emulator, clients)
    image = there("ssm").get_parameter(Name=NEWEST)["Parameter"]["Value"]
    assert there("sts").get_caller_identity()["Account"] == OTHER
    (here,) = launch(ClientToken="t")
    (elsewhere,) = there("ec2").run_instances(
        ImageId=image,
        InstanceType="g4dn.xlarge",
        MinCount=1,
        MaxCount=1,
        ClientToken="t",
    )["Instances"]
    assert [one["InstanceId"] for one in shown(ec2)] == [here["InstanceId"]]
    assert [one["InstanceId"] for one in shown(there("ec2"))] == [
        elsewhere["InstanceId"]
    ]
    code = refused(ec2.terminate_instances, InstanceIds=[elsewhere["InstanceId"]])[1]
    assert code == "InvalidInstanceID.NotFound"


def test_regions_are_apart(emulator, ec2, launch):
    launch()
    assert shown(emulator.client("ec2", region="eu-west-1")) == []
