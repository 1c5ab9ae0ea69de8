"""The host keys of a workspace: all nodes share those of a Secret."""

import base64
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import host_keys
from api_server import Refused, in_cluster
from failure import Failure, reported
from fakes.api import TOKEN, Api, serving
from fakes.certificates import certificate

NAME = "vision-host-keys"
FILES = {f"{key}{end}" for key in host_keys.PRIVATE for end in ["", ".pub"]}


@pytest.fixture
def api() -> Iterator[Api]:
    with serving(Api()) as served:
        yield served


class Clock:
    """A clock that advances only when the script sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def shared(api: Api, folder: Path) -> host_keys.Keys:
    clock = Clock()
    return host_keys.shared(api.secrets(), NAME, folder, clock, clock.sleep)


def held(api: Api) -> host_keys.Keys:
    return {k: base64.b64decode(v) for k, v in (api.data or {}).items()}


def public(private: bytes, folder: Path) -> bytes:
    path = folder / "private"
    path.touch(0o600)
    path.write_bytes(private)
    command = ["ssh-keygen", "-y", "-f", str(path)]
    return subprocess.run(command, check=True, capture_output=True).stdout


def test_the_first_pod_makes_keys_that_belong_together(
    api: Api, tmp_path: Path
) -> None:
    keys = shared(api, tmp_path)
    assert keys.keys() == FILES and held(api) == keys
    for name in host_keys.PRIVATE:
        derived = public(keys[name], tmp_path).split()[:2]
        assert keys[f"{name}.pub"].split() == derived
    assert api.patches == 1


def test_a_pod_that_comes_back_has_the_same_keys(api: Api, tmp_path: Path) -> None:
    first = shared(api, tmp_path)
    assert shared(api, tmp_path) == first
    assert api.patches == 1


def test_pods_that_start_at_once_agree(api: Api, tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: shared(api, tmp_path), range(8)))
    assert api.patches == 1
    assert all(keys == held(api) for keys in found)


def test_a_pod_that_was_slower_takes_the_others_keys(api: Api, tmp_path: Path) -> None:
    with serving(Api()) as elsewhere:
        others = shared(elsewhere, tmp_path)
        data = elsewhere.data

    def faster(api: Api) -> None:
        if api.data is None:
            api.data, api.version = data, api.version + 1

    api.meanwhile = faster
    assert shared(api, tmp_path) == others
    assert api.patches == 0


@pytest.mark.parametrize("faults", [[0, 0], [503, 500], [429], [200, 503]])
def test_an_api_server_that_is_away_for_a_moment_is_waited_for(
    api: Api, tmp_path: Path, faults: list[int]
) -> None:
    api.faults = faults
    assert shared(api, tmp_path).keys() == FILES


def test_an_api_server_that_stays_away_is_named(api: Api, tmp_path: Path) -> None:
    api.faults = [503] * 1000
    with pytest.raises(
        Failure, match="team/vision-host-keys.*no answer for 120 s: 503"
    ):
        shared(api, tmp_path)
    # The script pauses between its calls.
    assert api.calls < 60


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (403, "needs a Role with the verbs get and patch"),
        (404, "does not exist. It is composed with the workspace"),
        (401, "refused it: 401"),
    ],
)
def test_a_refusal_says_what_is_missing(
    api: Api, tmp_path: Path, status: int, says: str
) -> None:
    api.faults = [status] * 1000
    with pytest.raises(Failure) as failed:
        shared(api, tmp_path)
    assert "team/vision-host-keys" in str(failed.value)
    assert says in str(failed.value)


def test_a_role_that_comes_a_moment_later_is_waited_for(
    api: Api, tmp_path: Path
) -> None:
    api.faults = [403, 403]
    assert shared(api, tmp_path).keys() == FILES


def test_a_public_key_that_somebody_changed_follows_the_private_one(
    api: Api, tmp_path: Path
) -> None:
    first = shared(api, tmp_path)
    assert api.data is not None
    api.data["ssh_host_ed25519_key.pub"] = base64.b64encode(b"ssh-ed25519 X").decode()
    assert shared(api, tmp_path) == first and held(api) == first


def test_a_key_that_is_broken_is_named_and_not_printed(
    api: Api, tmp_path: Path
) -> None:
    secret = "-----BEGIN OPENSSH PRIVATE KEY-----\nc2VjcmV0\n"
    api.data = {"gang_ed25519": base64.b64encode(secret.encode()).decode()}
    with pytest.raises(Failure) as failed:
        shared(api, tmp_path)
    assert "gang_ed25519" in str(failed.value)
    assert "c2VjcmV0" not in str(failed.value)


def test_private_keys_are_written_for_the_owner_alone(tmp_path: Path) -> None:
    host_keys.store({"a": b"private", "a.pub": b"public"}, tmp_path)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == {"a": 0o600, "a.pub": 0o644}


def test_a_failure_is_the_containers_termination_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails() -> int:
        raise Failure("Secret team/x does not exist")

    log = tmp_path / "termination-log"
    assert reported(fails, str(log)) == 1
    assert log.read_text() == "error: Secret team/x does not exist"
    assert capsys.readouterr().err == "error: Secret team/x does not exist\n"


def test_a_server_with_another_certificate_is_not_given_the_token(
    tmp_path: Path,
) -> None:
    trusted, other = certificate(tmp_path / "a.pem"), certificate(tmp_path / "b.pem")
    account = tmp_path / "account"
    account.mkdir()
    (account / "token").write_text(TOKEN)
    (account / "namespace").write_text("team")
    (account / "ca.crt").write_text(trusted.read_text())
    with serving(Api(data={}), trusted) as api:
        secrets = in_cluster("127.0.0.1", api.port, account)
        assert secrets.get(NAME) == api.object()
    with serving(Api(data={}), other) as api:
        secrets = in_cluster("127.0.0.1", api.port, account)
        with pytest.raises(Refused, match="its certificate: self-signed"):
            secrets.get(NAME)
        assert api.calls == 0
