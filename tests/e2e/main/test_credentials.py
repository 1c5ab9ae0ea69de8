"""Credentials: each source works, and an error names the missing part."""

from collections.abc import Iterator

import pytest

from environment.cluster import SYSTEM, Cluster, condition
from environment.objects import Object, Refused
from environment.configurations import Configurations
from environment.ec2 import Ec2
from environment.emulator import Emulator
from environment.pools import CONFIGURATIONS, PODS, USAGES, Pools
from environment.runtime import DEFAULT, of_emulator, use
from environment.waiting import until

SECRET = "do-not-print-me"
PROFILE = f"[default]\naws_access_key_id = AKIATEST\naws_secret_access_key = {SECRET}\n"
HERE = "123456789012"
THERE, FAR = "111122223333", "444455556666"
# The folders in which EKS mounts tokens: for IRSA, and for Pod Identity.
IRSA = "/var/run/secrets/eks.amazonaws.com/serviceaccount"
POD = "/var/run/secrets/pods.eks.amazonaws.com/serviceaccount"


def role(account: str, name: str = "pools") -> str:
    return f"arn:aws:iam::{account}:role/{name}"


def by_token(place: Object, account: str, **more: str) -> Object:
    identity = {"roleARN": role(account), "tokenConfig": place, **more}
    return {"source": "WebIdentity", "webIdentity": identity}


@pytest.fixture
def configurations(
    cluster: Cluster, namespace: str, emulator: Emulator
) -> Iterator[Configurations]:
    configurations = Configurations(cluster, namespace, emulator)
    yield configurations
    configurations.remove()


def test_a_namespaces_own_credentials_serve_its_pools(
    cluster: Cluster, pools: Pools, ec2: Ec2, configurations: Configurations
) -> None:
    configurations.secret(PROFILE)
    reference = configurations.apply("own", configurations.keys())
    pools.apply("pool", providerConfigRef=reference)
    pools.ready("pool")
    (usage,) = cluster.all(USAGES, pools.namespace)
    assert usage["spec"]["providerConfigRef"] == reference
    assert len(ec2.live(pools.namespace)) == 1
    pools.delete("pool")
    assert ec2.live(pools.namespace) == []


def test_what_is_missing_is_named_and_its_arrival_noticed_without_a_restart(
    pools: Pools, configurations: Configurations
) -> None:
    pools.apply("pool", providerConfigRef={"kind": "ProviderConfig", "name": "late"})
    pools.says("pool", "Synced", "False", 'ProviderConfig "late" does not exist')
    configurations.apply("late", configurations.keys())
    missing = f"Secret {pools.namespace}/aws has no key"
    pools.says("pool", "Synced", "False", missing)
    configurations.secret("[default]\naws_access_key_id = AKIATEST\n")
    missing = "[default] has no aws_secret_access_key"
    pools.says("pool", "Synced", "False", missing)
    configurations.secret(PROFILE)
    pools.ready("pool")
    pools.delete("pool")


def test_a_namespace_cannot_use_the_secrets_of_another(
    pools: Pools, ec2: Ec2, configurations: Configurations
) -> None:
    theirs = configurations.reference(namespace=SYSTEM)
    reference = configurations.apply(
        "theirs", {"source": "Secret", "secretRef": theirs}
    )
    pools.apply("pool", providerConfigRef=reference)
    pools.says("pool", "Synced", "False", "spec.credentials.secretRef.namespace")
    assert ec2.live(pools.namespace) == []
    pools.delete("pool")


@pytest.mark.alone
def test_a_namespace_cannot_act_with_the_providers_identity(
    cluster: Cluster,
    pools: Pools,
    emulator: Emulator,
    configurations: Configurations,
    identity: None,
) -> None:
    emulator.forget_calls()
    for source in ("IRSA", "PodIdentity"):
        reference = configurations.apply(source.lower(), {"source": source})
        pools.apply("pool", providerConfigRef=reference)
        said = f'ProviderConfig "{source.lower()}": spec.credentials.source'
        pools.says("pool", "Synced", "False", said)
        until("the configuration to say so", lambda: _refusal(cluster, pools, said))
    calls = emulator.calls()
    assert calls.get("AssumeRoleWithWebIdentity", 0) == 0
    assert calls.get("AssumeRoleForPodIdentity", 0) == 0
    pools.delete("pool")


def test_a_namespace_cannot_have_requests_sent_to_any_server(
    pools: Pools, ec2: Ec2, configurations: Configurations
) -> None:
    configurations.secret(PROFILE)
    url = "https://kubernetes.default.svc"
    reference = configurations.apply(
        "nosy",
        configurations.keys(),
        endpoint={"url": {"type": "Static", "static": url}},
    )
    pools.apply("pool", providerConfigRef=reference)
    pools.says("pool", "Synced", "False", "--allowed-endpoints")
    assert ec2.live(pools.namespace) == []
    pools.delete("pool")


def test_a_namespace_cannot_take_the_messages_of_a_queue(
    configurations: Configurations,
) -> None:
    queues = {"us-east-1": "https://sqs.us-east-1.amazonaws.com/123456789012/events"}
    with pytest.raises(Refused, match="only a ClusterProviderConfig has eventQueues"):
        configurations.apply("greedy", configurations.keys(), eventQueues=queues)


@pytest.mark.parametrize(
    ("credentials", "field"),
    [
        ({"source": "Secret"}, "secretRef is required"),
        ({"source": "WebIdentity"}, "webIdentity is required"),
        (by_token({"source": "Secret"}, HERE), "secretRef is required"),
        (by_token({"source": "Filesystem"}, HERE), "fs is required"),
        ({"source": "Guess"}, "Unsupported value"),
    ],
)
def test_a_source_without_what_it_needs_is_refused_when_it_is_applied(
    configurations: Configurations, credentials: Object, field: str
) -> None:
    with pytest.raises(Refused, match=field):
        configurations.apply("incomplete", credentials)


@pytest.mark.alone
def test_the_pods_role_serves_where_eks_annotates_the_service_account(
    pools: Pools, emulator: Emulator, configurations: Configurations, identity: None
) -> None:
    reference = configurations.apply_to_cluster({"source": "IRSA"})
    _serves(pools, emulator, reference, HERE)
    call, *_ = emulator.recorded("AssumeRoleWithWebIdentity")
    assert call["parameters"]["RoleArn"] == role(HERE)


@pytest.mark.thorough
@pytest.mark.alone
def test_a_token_in_a_file_opens_another_role(
    pools: Pools, emulator: Emulator, configurations: Configurations, identity: None
) -> None:
    place = {"source": "Filesystem", "fs": {"path": f"{IRSA}/token"}}
    reference = configurations.apply_to_cluster(
        by_token(place, THERE, roleSessionName="files")
    )
    _serves(pools, emulator, reference, THERE)
    call, *_ = emulator.recorded("AssumeRoleWithWebIdentity")
    assert call["parameters"]["RoleSessionName"] == "files"


@pytest.mark.thorough
@pytest.mark.alone
def test_a_token_in_a_secret_opens_a_role(
    pools: Pools, emulator: Emulator, configurations: Configurations
) -> None:
    configurations.secret(SECRET, key="token")
    place = {"source": "Secret", "secretRef": configurations.reference("token")}
    reference = configurations.apply("own", by_token(place, THERE))
    _serves(pools, emulator, reference, THERE)
    call, *_ = emulator.recorded("AssumeRoleWithWebIdentity")
    asked = call["parameters"]
    assert asked["RoleSessionName"] == "provider-gpu-spot"
    assert asked["WebIdentityToken"] == f"({len(SECRET)} characters withheld)"


@pytest.mark.thorough
@pytest.mark.alone
def test_the_pods_identity_serves_where_eks_associates_it(
    pools: Pools, emulator: Emulator, configurations: Configurations, identity: None
) -> None:
    emulator.fault("AssumeRoleForPodIdentity", code="AccessDeniedException")
    reference = configurations.apply_to_cluster({"source": "PodIdentity"})
    pools.apply("denied", providerConfigRef=reference)
    seen = pools.says("denied", "Synced", "False", "Pod Identity association")
    assert reference["name"] in condition(seen, "Synced")["message"]
    emulator.clear_faults()
    pools.ready("denied")
    pools.delete("denied")
    assert emulator.calls().get("AssumeRoleForPodIdentity", 0) >= 2


@pytest.mark.thorough
@pytest.mark.alone
def test_a_proxy_may_sign_instead_of_the_provider(
    pools: Pools, emulator: Emulator, configurations: Configurations
) -> None:
    reference = configurations.apply("proxy", {"source": "None"})
    _serves(pools, emulator, reference, None)


@pytest.mark.thorough
@pytest.mark.alone
def test_roles_are_assumed_one_after_the_other(
    pools: Pools, emulator: Emulator, configurations: Configurations
) -> None:
    configurations.secret(PROFILE)
    tags = [{"key": "team", "value": "gpu"}, {"key": "stage", "value": "test"}]
    first = {
        "roleARN": role(THERE, "hub"),
        "externalID": "acme-42",
        "tags": tags,
        "transitiveTagKeys": ["team"],
    }
    chain = [first, {"roleARN": role(FAR)}]
    reference = configurations.apply(
        "own", configurations.keys(), assumeRoleChain=chain
    )
    _serves(pools, emulator, reference, FAR)
    calls = {c["parameters"]["RoleArn"]: c for c in emulator.recorded("AssumeRole")}
    hub, last = calls[role(THERE, "hub")], calls[role(FAR)]
    assert (hub["account"], last["account"]) == (HERE, THERE)
    asked = hub["parameters"]
    assert asked["ExternalId"] == "acme-42"
    assert asked["Tags.member.1.Key"] == "team"
    assert asked["Tags.member.2.Value"] == "test"
    assert asked["TransitiveTagKeys.member.1"] == "team"
    assert "ExternalId" not in last["parameters"]


def test_no_secret_is_in_any_log_or_status(cluster: Cluster, namespace: str) -> None:
    (pod,) = cluster.pods(PODS)
    log = cluster.kubectl("logs", "-n", SYSTEM, pod["metadata"]["name"])
    told = cluster.kubectl("get", "spotpools,events", "-A", "-o", "json")
    assert log and SECRET not in log + told


def _refusal(cluster: Cluster, pools: Pools, said: str) -> bool:
    """Whether a configuration's own condition has this message."""
    found = cluster.all(CONFIGURATIONS, pools.namespace)
    return any(said in condition(one, "Permitted").get("message", "") for one in found)


def _serves(
    pools: Pools, emulator: Emulator, reference: Object, account: str | None
) -> None:
    """Creates and deletes a pool. Checks that this account's credentials signed its
    launch; None means no signature."""
    emulator.forget_calls()
    pools.apply("pool", providerConfigRef=reference)
    pools.ready("pool")
    launches = emulator.recorded("CreateFleet")
    assert [call["account"] for call in launches] == [account]
    pools.delete("pool")


@pytest.fixture(scope="module")
def identity(cluster: Cluster) -> Iterator[None]:
    """Runs the provider with the identities that EKS's webhooks add to a pod."""
    name = "eks"
    cluster.apply(_runtime(name))
    use(cluster, name)
    yield
    use(cluster, DEFAULT)


def _runtime(name: str) -> Object:
    tokens = {
        "aws-iam-token": (IRSA, "token", "sts.amazonaws.com"),
        "eks-pod-identity-token": (
            POD,
            "eks-pod-identity-token",
            "pods.eks.amazonaws.com",
        ),
    }
    environment = {
        "AWS_ROLE_ARN": role(HERE),
        "AWS_WEB_IDENTITY_TOKEN_FILE": f"{IRSA}/token",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.23/v1/credentials",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": f"{POD}/eks-pod-identity-token",
    }
    container = {
        "name": "package-runtime",
        "args": [of_emulator()],
        "env": [{"name": name, "value": value} for name, value in environment.items()],
        "volumeMounts": [
            {"name": volume, "mountPath": mount}
            for volume, (mount, _, _) in tokens.items()
        ],
    }
    volumes = [
        _token_volume(volume, path, audience)
        for volume, (_, path, audience) in tokens.items()
    ]
    pod = {"containers": [container], "volumes": volumes}
    return {
        "apiVersion": "pkg.crossplane.io/v1beta1",
        "kind": "DeploymentRuntimeConfig",
        "metadata": {"name": name},
        "spec": {
            "deploymentTemplate": {"spec": {"selector": {}, "template": {"spec": pod}}}
        },
    }


def _token_volume(name: str, path: str, audience: str) -> Object:
    token = {"path": path, "audience": audience, "expirationSeconds": 3600}
    return {"name": name, "projected": {"sources": [{"serviceAccountToken": token}]}}
