"""EKS's Pod Identity agent gives a pod's SDK the session of a role."""

import json
import urllib.error
import urllib.request

import boto3
import pytest


def ask(emulator, token):
    request = urllib.request.Request(f"{emulator.url}/v1/credentials")
    if token:
        request.add_header("Authorization", token)
    with urllib.request.urlopen(request, timeout=20) as reply:
        return json.load(reply)


def refused(emulator, token):
    with pytest.raises(urllib.error.HTTPError) as caught:
        ask(emulator, token)
    return caught.value.code, caught.value.read().decode()


def test_a_pod_gets_the_session_of_its_role(emulator, monkeypatch, tmp_path):
    token = tmp_path / "eks-pod-identity-token"
    token.write_text("a-very-secret-token")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    agent = f"{emulator.url}/v1/credentials"
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", agent)
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(token))
    sts = boto3.Session().client(
        "sts", region_name="us-east-1", endpoint_url=emulator.url
    )
    assert sts.get_caller_identity()["Arn"].endswith(
        ":assumed-role/pod-identity/eks-pod"
    )
    assert emulator.calls()["counts"]["AssumeRoleForPodIdentity"] == 1
    assert "very-secret" not in str(emulator.calls())


def test_a_pod_without_a_token_is_refused(emulator):
    status, text = refused(emulator, "")
    assert (status, "token is empty" in text) == (400, True)


def test_a_role_that_is_not_associated_is_refused(emulator):
    emulator.fault("AssumeRoleForPodIdentity", code="AccessDeniedException")
    status, text = refused(emulator, "a token")
    assert (status, "AccessDeniedException" in text) == (400, True)
