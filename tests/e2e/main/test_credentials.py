"""Credentials: each source works, and what is missing is named."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from environment.cluster import SYSTEM, Cluster, Object, condition, is_ready
from environment.ec2 import Ec2
from environment.emulator import Emulator
from environment.waiting import until

PROVIDER = "acme-provider-gpu-spot"
PODS = f"provider={PROVIDER}"
API = "gpu.platform.acme.io/v1alpha1"
SECRET = "do-not-print-me"
PROFILE = f"[default]\naws_access_key_id = AKIATEST\naws_secret_access_key = {SECRET}\n"


def test_a_namespaces_own_credentials_serve_its_pools(
    cluster: Cluster, namespace: str, ec2: Ec2, emulator: Emulator
) -> None:
    _secret(cluster, namespace, PROFILE)
    cluster.apply(_config("ProviderConfig", "own", namespace, emulator.url, namespace))
    cluster.apply(_pool(namespace, {"kind": "ProviderConfig", "name": "own"}))
    until("the pool to be Ready", lambda: is_ready(_get(cluster, namespace)))
    (usage,) = cluster.all("providerconfigusages", namespace)
    assert usage["spec"]["providerConfigRef"] == {
        "kind": "ProviderConfig",
        "name": "own",
    }
    assert len(ec2.live(namespace)) == 1
    _delete(cluster, namespace)
    assert ec2.live(namespace) == []


def test_what_is_missing_is_named_and_its_arrival_noticed_without_a_restart(
    cluster: Cluster, namespace: str, emulator: Emulator
) -> None:
    cluster.apply(_pool(namespace, {"kind": "ProviderConfig", "name": "late"}))
    _says(cluster, namespace, 'ProviderConfig "late" does not exist')
    cluster.apply(_config("ProviderConfig", "late", namespace, emulator.url, namespace))
    _says(cluster, namespace, f"Secret {namespace}/aws has no key")
    _secret(cluster, namespace, "[default]\naws_access_key_id = AKIATEST\n")
    _says(cluster, namespace, "[default] has no aws_secret_access_key")
    _secret(cluster, namespace, PROFILE)
    until("the pool to be Ready", lambda: is_ready(_get(cluster, namespace)))
    _delete(cluster, namespace)


def test_a_namespace_cannot_use_the_secrets_of_another(
    cluster: Cluster, namespace: str, ec2: Ec2, emulator: Emulator
) -> None:
    cluster.apply(_config("ProviderConfig", "theirs", namespace, emulator.url, SYSTEM))
    cluster.apply(_pool(namespace, {"kind": "ProviderConfig", "name": "theirs"}))
    _says(cluster, namespace, "spec.credentials.secretRef.namespace")
    assert ec2.live(namespace) == []
    _delete(cluster, namespace)


def test_a_web_identity_is_exchanged_for_a_session(
    cluster: Cluster, namespace: str, emulator: Emulator, irsa: str
) -> None:
    cluster.apply(
        {
            "apiVersion": API,
            "kind": "ClusterProviderConfig",
            "metadata": {"name": irsa},
            "spec": {
                "credentials": {"source": "IRSA"},
                "endpoint": {"url": {"type": "Static", "static": emulator.url}},
            },
        }
    )
    emulator.forget_calls()
    cluster.apply(_pool(namespace, {"kind": "ClusterProviderConfig", "name": irsa}))
    until("the pool to be Ready", lambda: is_ready(_get(cluster, namespace)))
    assert emulator.calls().get("AssumeRoleWithWebIdentity", 0) >= 1
    _delete(cluster, namespace)


def test_no_secret_is_in_any_log_or_status(cluster: Cluster, namespace: str) -> None:
    (pod,) = cluster.pods(PODS)
    log = cluster.kubectl("logs", "-n", SYSTEM, pod["metadata"]["name"])
    pools = json.dumps(cluster.all("spotpools", namespace))
    events = json.dumps(cluster.all("events", namespace))
    assert log and SECRET not in log + pools + events


@pytest.fixture
def irsa(cluster: Cluster) -> Iterator[str]:
    """The provider with a web identity, as EKS would give it one."""
    name = "web-identity"
    cluster.apply(_runtime(name))
    _use_runtime(cluster, name)
    yield name
    cluster.kubectl("delete", "clusterproviderconfig", name, "--wait=false")
    _use_runtime(cluster, "default")


def _use_runtime(cluster: Cluster, name: str) -> None:
    patch = {"spec": {"runtimeConfigRef": {"name": name}}}
    old = {pod["metadata"]["uid"] for pod in cluster.pods(PODS)}
    cluster.kubectl(
        "patch",
        "provider.pkg.crossplane.io",
        PROVIDER,
        "--type=merge",
        "-p",
        json.dumps(patch),
    )
    until("the provider's new pod", lambda: cluster.renewed(PODS, old), seconds=120)


def _runtime(name: str) -> Object:
    mount = "/var/run/secrets/eks.amazonaws.com/serviceaccount"
    token = {
        "path": "token",
        "audience": "sts.amazonaws.com",
        "expirationSeconds": 3600,
    }
    container = {
        "name": "package-runtime",
        "env": [
            {"name": "AWS_ROLE_ARN", "value": "arn:aws:iam::123456789012:role/pools"},
            {"name": "AWS_WEB_IDENTITY_TOKEN_FILE", "value": f"{mount}/token"},
        ],
        "volumeMounts": [{"name": "aws-iam-token", "mountPath": mount}],
    }
    volume = {
        "name": "aws-iam-token",
        "projected": {"sources": [{"serviceAccountToken": token}]},
    }
    pod = {"containers": [container], "volumes": [volume]}
    return {
        "apiVersion": "pkg.crossplane.io/v1beta1",
        "kind": "DeploymentRuntimeConfig",
        "metadata": {"name": name},
        "spec": {
            "deploymentTemplate": {"spec": {"selector": {}, "template": {"spec": pod}}}
        },
    }


def _secret(cluster: Cluster, namespace: str, profile: str) -> None:
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "aws", "namespace": namespace},
            "stringData": {"credentials": profile},
        }
    )


def _config(kind: str, name: str, namespace: str, url: str, of: str) -> Object:
    reference = {"namespace": of, "name": "aws", "key": "credentials"}
    return {
        "apiVersion": API,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "credentials": {"source": "Secret", "secretRef": reference},
            "endpoint": {"url": {"type": "Static", "static": url}},
        },
    }


def _pool(namespace: str, reference: dict[str, Any]) -> Object:
    return {
        "apiVersion": API,
        "kind": "SpotPool",
        "metadata": {"name": "pool", "namespace": namespace},
        "spec": {
            "providerConfigRef": reference,
            "forProvider": {
                "region": "us-east-1",
                "size": {"minimum": 1, "maximum": 1},
                "instanceTypes": ["g4dn.xlarge"],
                "image": {"id": "ami-00000000000c0de01"},
            },
        },
    }


def _get(cluster: Cluster, namespace: str) -> Object | None:
    return cluster.get("spotpool", "pool", namespace)


def _says(cluster: Cluster, namespace: str, words: str) -> None:
    until(
        f"the pool to say {words!r}",
        lambda: words
        in condition(_get(cluster, namespace), "Synced").get("message", ""),
        seconds=90,
    )


def _delete(cluster: Cluster, namespace: str) -> None:
    cluster.kubectl("delete", "spotpool", "pool", "-n", namespace, "--timeout=60s")
