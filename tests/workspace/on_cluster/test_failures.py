"""The messages of a workspace that cannot start."""

from collections.abc import Callable, Iterator

import pytest

from on_cluster import workspaces
from on_cluster.workspaces import Workspace, until

Wrong = Callable[[str, Callable[[str], str]], Workspace]


@pytest.fixture
def wrong(image: str, owner: str) -> Iterator[Wrong]:
    """Applies a changed manifest."""
    workspaces.namespace()
    names = []

    def applied(name: str, change: Callable[[str], str]) -> Workspace:
        names.append(name)
        return workspaces.apply(name, image, [owner], change=change)

    yield applied
    for name in names:
        workspaces.delete(name)


def _without(kind: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        kept = [d for d in text.split("\n---\n") if f"\nkind: {kind}\n" not in d]
        assert len(kept) == text.count("\n---\n")
        return "\n---\n".join(kept)

    return change


def _replaced(old: str, new: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new)

    return change


def _says(workspace: Workspace) -> str:
    said = until("a termination message", workspace.termination_message)
    assert not workspace.ready(f"{workspace.name}-0")
    return str(said)


def test_another_opencv_than_promised_is_named_with_both_versions(wrong: Wrong) -> None:
    said = _says(wrong("other-opencv", _replaced("value: 4.8.0}", "value: 4.9.0}")))
    assert "OpenCV 4.8.0" in said and "asks for 4.9.0" in said


def test_a_pytorch_that_does_not_import_is_named_with_the_reason(wrong: Wrong) -> None:
    # A mount of the home volume hides the files of the PyTorch package.
    mount = "            - {name: memory, mountPath: /dev/shm}\n"
    hidden = (
        "            - {name: home, mountPath: /usr/lib/python3/dist-packages/torch}\n"
    )
    said = _says(wrong("no-torch", _replaced(mount, mount + hidden)))
    assert "PyTorch does not work" in said and "torch" in said


def test_a_secret_that_was_not_composed_is_named(wrong: Wrong) -> None:
    said = _says(wrong("no-secret", _without("Secret")))
    assert "Secret workspaces/no-secret-host-keys does not exist" in said


def test_a_role_that_was_not_composed_is_named(wrong: Wrong) -> None:
    said = _says(wrong("no-role", _without("Role")))
    assert "needs a Role with the verbs get and patch" in said
    assert "no-role-host-keys" in said
