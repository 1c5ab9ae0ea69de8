"""If AWS refuses credentials, the pool names them, and recovers by itself."""

import pytest

from environment.cluster import Cluster, condition
from environment.objects import Object
from environment.configurations import Configurations, Reference
from environment.ec2 import Ec2
from environment.emulator import Emulator
from environment.pools import PODS, Pools
from environment.waiting import until


def key(namespace: str) -> str:
    """The id of the access key that the faults of one test match."""
    return f"AKIA{namespace.upper()}"


def role(namespace: str) -> str:
    return f"arn:aws:iam::111122223333:role/{namespace}"


@pytest.fixture
def old(namespace: str) -> dict[str, str]:
    """The match of a fault for the first key, which the emulator knows by its id."""
    return {"AccessKey": key(namespace)}


@pytest.fixture
def hub(namespace: str) -> str:
    return role(namespace)


def profile(key: str) -> str:
    return f"[default]\naws_access_key_id = {key}\naws_secret_access_key = x\n"


@pytest.fixture
def configurations(
    cluster: Cluster, namespace: str, emulator: Emulator
) -> Configurations:
    configurations = Configurations(cluster, namespace, emulator)
    configurations.secret(profile(key(namespace)))
    return configurations


@pytest.fixture
def own(configurations: Configurations) -> Reference:
    return configurations.apply("own", configurations.keys())


def test_expired_keys_are_named_and_fresh_ones_taken_without_a_restart(
    cluster: Cluster,
    pools: Pools,
    ec2: Ec2,
    emulator: Emulator,
    configurations: Configurations,
    own: Reference,
    old: dict[str, str],
) -> None:
    before = _uids(cluster)
    pools.apply("pool", providerConfigRef=own)
    pools.ready("pool")
    emulator.fault("*", code="ExpiredToken", match=old)
    next_step = (
        'ProviderConfig "own": put fresh keys into Secret '
        f'{pools.namespace}/aws, key "credentials"'
    )
    seen = pools.says("pool", "Synced", "False", next_step)
    assert "ExpiredToken" in condition(seen, "Synced")["message"]
    assert len(ec2.live(pools.namespace)) == 1, "an expired key lost the instance"
    configurations.secret(profile("AKIANEW"))
    pools.says("pool", "Synced", "True")
    assert _uids(cluster) == before
    assert len(ec2.live(pools.namespace)) == 1
    pools.delete("pool")


def test_keys_that_serve_again_need_nobody(
    pools: Pools, emulator: Emulator, own: Reference, old: dict[str, str]
) -> None:
    pools.apply("pool", providerConfigRef=own)
    pools.ready("pool")
    emulator.fault("DescribeInstances", code="AuthFailure", match=old)
    pools.says("pool", "Synced", "False", "AWS does not take its credentials")
    emulator.clear_faults()
    pools.says("pool", "Synced", "True")
    pools.delete("pool")


def test_a_role_that_does_not_trust_its_identity_is_named(
    pools: Pools, emulator: Emulator, configurations: Configurations, hub: str
) -> None:
    emulator.fault(
        "AssumeRole", code="AccessDenied", status=403, match={"RoleArn": hub}
    )
    chain = [{"roleARN": hub}]
    own = configurations.apply("own", configurations.keys(), assumeRoleChain=chain)
    pools.apply("pool", providerConfigRef=own)
    seen = pools.says("pool", "Synced", "False", f"AssumeRole: AccessDenied: {hub}")
    said = condition(seen, "Synced")["message"]
    assert 'ProviderConfig "own": let the role\'s trust policy admit' in said
    emulator.clear_faults()
    pools.ready("pool")
    pools.delete("pool")


def test_a_token_that_its_role_does_not_take_is_named(
    pools: Pools, emulator: Emulator, configurations: Configurations, hub: str
) -> None:
    operation = "AssumeRoleWithWebIdentity"
    emulator.fault(operation, code="ExpiredTokenException", match={"RoleArn": hub})
    configurations.secret("a token", key="token")
    at = configurations.reference("token")
    place = {"source": "Secret", "secretRef": at}
    identity = {"roleARN": hub, "tokenConfig": place}
    credentials = {"source": "WebIdentity", "webIdentity": identity}
    own = configurations.apply("own", credentials)
    pools.apply("pool", providerConfigRef=own)
    next_step = f"put a fresh token into Secret {pools.namespace}/aws"
    seen = pools.says("pool", "Synced", "False", next_step)
    assert f"{operation}: Expired" in condition(seen, "Synced")["message"]
    emulator.clear_faults()
    configurations.secret("another token", key="token")
    pools.ready("pool")
    pools.delete("pool")


def test_a_launch_that_was_denied_is_tried_at_once_with_other_keys(
    pools: Pools,
    emulator: Emulator,
    configurations: Configurations,
    own: Reference,
    old: dict[str, str],
) -> None:
    emulator.fault("CreateFleet", code="UnauthorizedOperation", match=old)
    pools.apply("pool", providerConfigRef=own)
    seen = pools.says("pool", "Launched", "False", "Denied")
    said = condition(seen, "Launched")["message"]
    assert 'ProviderConfig "own": check the permissions' in said
    configurations.secret(profile("AKIANEW"))
    pools.annotate("pool", "look=now")
    # Without other keys, the provider would retry the denied launch after five minutes.
    pools.ready("pool", seconds=100)
    pools.delete("pool")


def test_a_pool_that_may_not_terminate_stays_with_its_instance_and_says_so(
    pools: Pools, ec2: Ec2, emulator: Emulator, own: Reference, old: dict[str, str]
) -> None:
    pools.apply("pool", providerConfigRef=own)
    pools.ready("pool")
    emulator.fault("TerminateInstances", code="UnauthorizedOperation", match=old)
    pools.delete("pool", wait=False)
    seen = pools.says("pool", "Synced", "False", "ec2:TerminateInstances")
    assert 'ProviderConfig "own"' in condition(seen, "Synced")["message"]
    assert seen["metadata"]["finalizers"]
    assert len(ec2.live(pools.namespace)) == 1
    emulator.clear_faults()
    until("the pool to go", lambda: pools.get("pool") is None, seconds=90)
    assert ec2.live(pools.namespace) == []


def _uids(cluster: Cluster) -> list[str]:
    pods: list[Object] = cluster.pods(PODS)
    return [pod["metadata"]["uid"] for pod in pods]
