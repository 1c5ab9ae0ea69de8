"""Pools behave as Crossplane documents it for every managed resource."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest

from environment.cluster import Cluster, condition, is_ready
from environment.objects import Object
from environment.ec2 import Ec2
from environment.emulator import Emulator
from environment.pools import (
    API,
    CONFIGURATIONS,
    PODS,
    Pools,
    answers,
    operations,
    samples,
)
from environment.waiting import until

MONITORING = Path(__file__).parents[3] / "docs/monitoring"
DASHBOARD = MONITORING / "dashboard.json"
ALERTS = MONITORING / "alerts.yaml"
METRIC = re.compile(
    r"\b(?:gpu_spot|aws_ec2|crossplane_managed_resource|controller_runtime)_[a-z0-9_]+"
)
PAUSED = "crossplane.io/paused"
REQUEST = "crossplane.io/reconcile-requested-at"
KIND = "gpu.platform.acme.io/v1alpha1, Kind=SpotPool"


def test_a_paused_pool_is_not_touched(
    pools: Pools, ec2: Ec2, emulator: Emulator
) -> None:
    pools.apply("paused", {PAUSED: "true"})
    seen = pools.says("paused", "Synced", "False", "ReconcilePaused")
    assert "finalizers" not in seen["metadata"]
    # A second pool shows that the provider has had time to reconcile the first.
    pools.apply("witness")
    pools.ready("witness")
    assert len(ec2.live(pools.namespace)) == 1
    pools.annotate("paused", f"{PAUSED}-")
    pools.ready("paused")
    # A pool that is deleted while it is paused remains, with its instance.
    pools.annotate("paused", f"{PAUSED}=true")
    pools.says("paused", "Synced", "False", "ReconcilePaused")
    pools.delete("paused", wait=False)
    pools.delete("witness")
    assert len(ec2.live(pools.namespace)) == 1
    pools.annotate("paused", f"{PAUSED}-")
    until("the pool to go", lambda: pools.get("paused") is None)
    assert ec2.live(pools.namespace) == []


def test_an_observed_pool_never_launches(pools: Pools, ec2: Ec2) -> None:
    pools.apply("observed", managementPolicies=["Observe"])
    seen = pools.says("observed", "Synced", "True")
    assert not is_ready(seen)
    pools.apply("witness")
    pools.ready("witness")
    assert len(ec2.live(pools.namespace)) == 1
    pools.patch("observed", {"managementPolicies": ["*"]})
    pools.ready("observed")
    pools.delete("observed")
    pools.delete("witness")


def test_policies_that_make_no_sense_are_named(pools: Pools, ec2: Ec2) -> None:
    pools.apply("senseless", managementPolicies=["Create"])
    pools.says("senseless", "Synced", "False", "spec.managementPolicies")
    assert ec2.live(pools.namespace) == []
    pools.patch("senseless", {"managementPolicies": ["Observe"]})
    pools.says("senseless", "Synced", "True")
    pools.delete("senseless")


def test_a_configuration_in_use_is_not_deleted(
    cluster: Cluster, pools: Pools, ec2: Ec2, emulator: Emulator
) -> None:
    _configure(cluster, pools.namespace, emulator)
    reference = {"kind": "ProviderConfig", "name": "own"}
    pools.apply("pool", providerConfigRef=reference)
    pools.ready("pool")

    def config() -> Object | None:
        return cluster.get(CONFIGURATIONS, "own", pools.namespace)

    def users() -> Any:
        return (config() or {}).get("status", {}).get("users")

    until("the pool to be counted", lambda: users() == 1)
    cluster.kubectl(
        *("delete", CONFIGURATIONS, "own", "-n", pools.namespace, "--wait=false")
    )
    until(
        "the configuration to say why it stays",
        lambda: condition(config(), "Terminating").get("reason") == "InUse",
    )
    # A foreground deletion deletes dependents before the pool. The pool's usage must
    # outlive the pool: otherwise the provider would lose its credentials.
    cluster.kubectl(
        *("delete", "spotpool", "pool", "-n", pools.namespace),
        *("--cascade=foreground", "--timeout=60s"),
    )
    assert ec2.live(pools.namespace) == []
    until("the configuration to go", lambda: config() is None)


@pytest.mark.thorough
@pytest.mark.alone
def test_a_pool_deleted_while_ec2_is_unreachable_stays_and_says_so(
    pools: Pools, ec2: Ec2, emulator: Emulator
) -> None:
    pools.apply("pool")
    pools.ready("pool")
    emulator.fault("*", code="InternalError", status=500)
    pools.delete("pool", wait=False)
    pools.says("pool", "Ready", "False", "Deleting")
    seen = pools.says("pool", "Synced", "False", "InternalError")
    assert seen["metadata"]["finalizers"]
    emulator.clear_faults()
    until("the pool to go", lambda: pools.get("pool") is None)
    assert ec2.live(pools.namespace) == []


@pytest.mark.alone
def test_a_request_to_reconcile_is_followed_at_once(
    cluster: Cluster, pools: Pools, emulator: Emulator
) -> None:
    emulator.fault("CreateFleet", code="UnauthorizedOperation", status=403)
    pools.apply("pool")
    pools.says("pool", "Launched", "False", "Denied")
    emulator.clear_faults()
    # Without the request, the provider would retry the denied launch in five minutes.
    pools.annotate("pool", f"{REQUEST}=mended")
    seen = pools.ready("pool", seconds=30)
    assert seen["status"]["lastHandledReconcileAt"] == "mended"
    events = cluster.all("events", pools.namespace)
    assert any(event["reason"] == "ReconcileRequestHandled" for event in events)
    pools.delete("pool")


def test_an_application_finds_the_instances_in_the_connection_secret(
    cluster: Cluster, pools: Pools, ec2: Ec2
) -> None:
    pools.apply("pool", writeConnectionSecretToRef={"name": "reach-me"})
    pools.ready("pool")
    (instance,) = ec2.live(pools.namespace)

    def secret() -> Object | None:
        return cluster.get("secret", "reach-me", pools.namespace)

    def endpoint() -> str:
        data = (secret() or {}).get("data", {})
        return base64.b64decode(data.get("endpoint", "")).decode()

    until("the address", lambda: endpoint() == instance["PublicIpAddress"])
    published = secret()
    assert published
    assert published["type"] == "connection.crossplane.io/v1alpha1"
    (owner,) = published["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["controller"]) == ("SpotPool", True)
    pools.annotate("pool", f"{REQUEST}=again")
    until(
        "the pool to be looked at",
        lambda: (pools.get("pool") or {})["status"].get("lastHandledReconcileAt")
        == "again",
    )
    assert secret() == published, "written though nothing changed"
    pools.delete("pool")
    until("the Secret to go with its pool", lambda: secret() is None)


def test_the_secret_of_somebody_else_is_not_overwritten(
    cluster: Cluster, pools: Pools
) -> None:
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "theirs", "namespace": pools.namespace},
            "stringData": {"endpoint": "theirs"},
        }
    )
    before = cluster.get("secret", "theirs", pools.namespace)
    pools.apply("pool", writeConnectionSecretToRef={"name": "theirs"})
    pools.says("pool", "Synced", "False", "spec.writeConnectionSecretToRef.name")
    assert cluster.get("secret", "theirs", pools.namespace) == before
    pools.delete("pool")


@pytest.mark.thorough
@pytest.mark.alone
def test_a_dashboard_for_crossplane_shows_the_pools(
    cluster: Cluster, pools: Pools
) -> None:
    pools.apply("pool")
    pools.ready("pool")
    (pod,) = cluster.pods(PODS)
    assert answers(cluster, "/healthz", pod)
    assert answers(cluster, "/readyz", pod)
    text = operations(cluster, "/metrics", pod)
    seen = samples(text)
    states = {
        state: seen[f'crossplane_managed_resource_{state}{{gvk="{KIND}"}}']
        for state in ("exists", "ready", "synced")
    }
    everywhere = cluster.kubectl("get", "spotpools", "-A", "-o", "json")
    assert states["exists"] == len(json.loads(everywhere)["items"])
    assert states["ready"] >= 1 and states["synced"] >= 1
    for stage in ("first_time_to_reconcile", "first_time_to_readiness"):
        name = f"crossplane_managed_resource_{stage}_seconds_count"
        assert seen[f'{name}{{gvk="{KIND}"}}'] >= 1
    calls = 'aws_ec2_api_calls_total{operation="CreateFleet",result="success"}'
    assert seen[calls] >= 1
    reconciles = "controller_runtime_reconcile_total"
    labels = 'controller="managed/spotpool",result="requeue_after"'
    assert seen[f"{reconciles}{{{labels}}}"] >= 1
    assert any(name.startswith("rest_client_requests_total") for name in seen)
    assert "# TYPE crossplane_managed_resource_deletion_seconds histogram" in text
    assert "# TYPE crossplane_managed_resource_drift_seconds histogram" in text
    pools.delete("pool")


@pytest.mark.alone
def test_no_dashboard_and_no_alert_asks_for_a_metric_that_is_not_there(
    cluster: Cluster, pools: Pools, emulator: Emulator
) -> None:
    lacking = {"InstanceType": "g6.4xlarge"}
    emulator.fault("CreateFleet", code="InsufficientInstanceCapacity", match=lacking)
    pools.apply("lacking", type_="g6.4xlarge")
    pools.says("lacking", "Launched", "False", "Capacity")
    pools.apply("pool")
    pools.ready("pool")
    (pod,) = cluster.pods(PODS)
    there = {
        name.split("{")[0] for name in samples(operations(cluster, "/metrics", pod))
    }
    asked = set(METRIC.findall(DASHBOARD.read_text() + ALERTS.read_text()))
    assert len(asked) >= 9, asked
    assert asked - there == set()
    pools.delete("lacking")
    pools.delete("pool")


def _configure(cluster: Cluster, namespace: str, emulator: Emulator) -> None:
    """Applies a ProviderConfig `own` with a Secret of its namespace."""
    profile = "[default]\naws_access_key_id = A\naws_secret_access_key = B\n"
    secret = {"namespace": namespace, "name": "aws", "key": "credentials"}
    for document in (
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "aws", "namespace": namespace},
            "stringData": {"credentials": profile},
        },
        {
            "apiVersion": API,
            "kind": "ProviderConfig",
            "metadata": {"name": "own", "namespace": namespace},
            "spec": {
                "credentials": {"source": "Secret", "secretRef": secret},
                "endpoint": {"url": {"type": "Static", "static": emulator.url}},
            },
        },
    ):
        cluster.apply(document)
