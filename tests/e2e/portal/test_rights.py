"""Each write of the portal is somebody's, and whoever has its token can do little with it."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from environment.cluster import Cluster
from environment.waiting import until
from page import Person, is_signed_out_elsewhere
from people import PASSWORD, Browser
from portal.installation import Installation, SignIn
from thief import Thief

SignedIn = Callable[[str], Browser]
OWNER = "system:serviceaccount:dev-alice:gpu-workspaces.owner"
SESSIONS = "platform.acme.io/portal-session"


def test_a_person_is_who_kubectl_says(
    cluster: Cluster, sign_in: SignIn, signed_in: SignedIn, tmp_path: Path
) -> None:
    me = signed_in("alice").get("/api/v1/me").json()
    assert (me["owner"], me["namespace"]) == ("alice", "dev-alice")
    config = yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text())
    for user in config["users"]:
        user["user"] = {"token": sign_in.id_token("alice", PASSWORD)}
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(config))
    said = cluster.kubectl(f"--kubeconfig={kubeconfig}", "auth", "whoami", "-o", "json")
    user = json.loads(said)["status"]["userInfo"]
    assert me["user"] == user["username"] == "alice@acme.io"
    # Of the groups, only those count that the portal's configuration names.
    assert me["groups"] == [one for one in user["groups"] if one == "acme:vision"] != []


def test_people_see_and_change_their_own_only(signed_in: SignedIn) -> None:
    alice, bob = signed_in("alice"), signed_in("bob")
    assert alice.writes("POST", "/api/v1/workspaces", {"name": "mine"}).ok
    assert (alice.names(), bob.names()) == (["mine"], [])
    theirs = "/api/v1/workspaces/dev-alice/mine"
    assert bob.get(theirs).status_code == 404
    for method, path in (("DELETE", theirs), ("POST", f"{theirs}/stop")):
        assert bob.writes(method, path).status_code == 404
    planted = {"name": "planted", "namespace": "dev-alice"}
    assert bob.writes("POST", "/api/v1/workspaces", planted).status_code == 400
    assert alice.names() == ["mine"]


def test_each_write_is_in_the_clusters_audit_log_with_the_id_of_the_request(
    portal: Installation, signed_in: SignedIn
) -> None:
    alice = signed_in("alice")
    for method, path, body, verb, said in (
        ("POST", "", {"name": "written"}, "create", "create"),
        ("POST", "/dev-alice/written/stop", None, "patch", "stop"),
        ("DELETE", "/dev-alice/written", None, "delete", "delete"),
    ):
        answer = alice.writes(method, f"/api/v1/workspaces{path}", body)
        assert answer.ok, answer.text
        request = answer.headers["X-Request-Id"]
        (record,) = until("the audit log", lambda: portal.recorded(request))
        assert record["verb"] == verb
        assert record["impersonatedUser"]["username"] == OWNER
        # The portal's own line has the person.
        lines = [json.loads(one) for one in portal.log().splitlines() if request in one]
        (line,) = [one for one in lines if one["target"] == "audit"]
        assert (line["user"], line["verb"]) == ("alice@acme.io", said)


RBAC = "/apis/rbac.authorization.k8s.io/v1"
CLAIMS = "/apis/platform.acme.io/v1alpha1/namespaces/{}/gpudevworkspaceclaims"
ADMINISTRATOR = {"Impersonate-User": "admin", "Impersonate-Group": "system:masters"}
CLUSTER_ADMINISTRATOR = {
    "Impersonate-User": "system:serviceaccount:kube-system:clusterrole-aggregation-controller"
}
ROLE = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "planted"},
    "roleRef": {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "cluster-admin",
    },
    "subjects": [
        {"kind": "ServiceAccount", "name": "gpu-portal", "namespace": "gpu-portal"}
    ],
}


@pytest.mark.parametrize(
    "who",
    [{}, {"Impersonate-User": OWNER}, ADMINISTRATOR, CLUSTER_ADMINISTRATOR],
    ids=["itself", "alice's account", "a cluster administrator", "an account"],
)
def test_the_token_of_a_pod_of_the_portal_opens_nothing_else(
    thief: Thief, cluster: Cluster, portal: Installation, who: dict[str, str]
) -> None:
    pod = portal.ready()[0]["metadata"]["name"]
    exec_ = f"/api/v1/namespaces/gpu-portal/pods/{pod}/exec?command=id&stdout=true"
    for method, path, body in (
        ("GET", "/api/v1/secrets", None),
        ("GET", "/api/v1/namespaces/crossplane-system/secrets", None),
        ("GET", "/api/v1/namespaces/dev-alice/secrets", None),
        ("GET", "/api/v1/nodes", None),
        ("POST", exec_, {}),
        ("POST", f"{RBAC}/clusterrolebindings", ROLE),
        ("DELETE", f"{RBAC}/clusterroles/cluster-admin", None),
        ("DELETE", f"{RBAC}/namespaces/dev-alice/rolebindings/x", None),
    ):
        answer = thief.asks(method, path, who, body)
        assert answer.status_code == 403, (method, path, answer.text)


def test_what_the_portal_needs_is_allowed(thief: Thief) -> None:
    """The refusals mean something only if this passes."""
    everywhere = "/apis/platform.acme.io/v1alpha1/gpudevworkspaceclaims"
    assert thief.asks("GET", everywhere).status_code == 200
    sessions = "/api/v1/namespaces/gpu-portal/secrets"
    assert thief.asks("GET", sessions).status_code == 200
    path = CLAIMS.format("dev-alice")
    claim = {
        "apiVersion": "platform.acme.io/v1alpha1",
        "kind": "GpuDevWorkspaceClaim",
        "metadata": {"name": "mine", "namespace": "dev-alice"},
        "spec": {"parameters": {"owner": "alice"}},
    }
    made = thief.asks("POST", path, {"Impersonate-User": OWNER}, claim)
    assert made.status_code == 201, made.text


def test_whose_session_is_deleted_is_signed_out_at_once_and_asks_no_more(
    person: Person, cluster: Cluster
) -> None:
    sessions = ("-n", "gpu-portal", "-l", SESSIONS)
    is_signed_out_elsewhere(
        person, lambda: cluster.kubectl("delete", "secrets", *sessions)
    )
