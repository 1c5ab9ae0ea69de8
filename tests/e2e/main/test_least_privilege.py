"""The provider's only permissions in the cluster are those that Crossplane grants."""

import pytest

from environment.cluster import SYSTEM, Cluster


def _service_account(cluster: Cluster) -> str:
    (pod,) = cluster.pods("provider=acme-provider-gpu-spot")
    return f"system:serviceaccount:{SYSTEM}:{pod['spec']['serviceAccountName']}"


@pytest.mark.parametrize(
    ("verb", "resource"),
    [
        ("create", "pods"),
        ("delete", "spotpools.gpu.platform.acme.io"),
        ("get", "nodes"),
        ("update", "gpudevworkspaces.platform.acme.io"),
        ("create", "clusterrolebindings.rbac.authorization.k8s.io"),
    ],
)
def test_a_stolen_provider_token_reads_secrets_and_opens_nothing_else(
    cluster: Cluster, verb: str, resource: str
) -> None:
    account = _service_account(cluster)
    assert not cluster.may(account, verb, resource)
    # Crossplane gives every provider this right. docs/security.md says so; if Crossplane narrows
    # it, the page changes.
    assert cluster.may(account, "get", "secrets", "--all-namespaces")


def test_no_binding_beside_crossplanes_own_names_the_provider(cluster: Cluster) -> None:
    account = _service_account(cluster).rsplit(":", 1)[1]
    bindings = cluster.kubectl(
        "get",
        "clusterrolebindings",
        "-o",
        f"jsonpath={{range .items[?(@.subjects[0].name=='{account}')]}}"
        "{.metadata.name}{'\\n'}{end}",
    ).split()
    assert len(bindings) == 1
    assert bindings[0].startswith("crossplane:provider:acme-provider-gpu-spot")
