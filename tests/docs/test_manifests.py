"""The API server accepts the manifests in the documentation."""

import re
from typing import Any

import pytest
import yaml

from documents import schemas
from documents.markdown import ROOT, Block, blocks

MANIFESTS = blocks("yaml")

# Kinds of Crossplane 2.4 and Kubernetes in the documentation. The test knows their
# names only, not their schemas.
OTHERS = {
    ("apiextensions.crossplane.io/v1", "Composition"),
    ("apiextensions.crossplane.io/v1beta1", "EnvironmentConfig"),
    ("apiextensions.crossplane.io/v1alpha1", "ManagedResourceActivationPolicy"),
    ("pkg.crossplane.io/v1beta1", "DeploymentRuntimeConfig"),
    ("pkg.crossplane.io/v1beta1", "ImageConfig"),
    ("pkg.crossplane.io/v1", "Configuration"),
    ("pkg.crossplane.io/v1", "Function"),
    ("pkg.crossplane.io/v1", "Provider"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ("v1", "Secret"),
    ("v1", "ConfigMap"),
    ("v1", "Namespace"),
}


def _documents(block: Block) -> list[Any]:
    return list(yaml.safe_load_all(block.text))


@pytest.mark.parametrize("block", MANIFESTS, ids=str)
def test_a_manifest_is_taken_as_it_is_written(block: Block) -> None:
    for one in schemas.objects(_documents(block)):
        named = (one["apiVersion"], one["kind"])
        is_ours = ".acme.io/" in one["apiVersion"]
        if is_ours:
            assert named in schemas.ours(), f"{block}: there is no {named}"
        elif one.keys() & {"metadata", "spec"}:
            assert named in OTHERS, f"{block}: nobody knows {named}"
        assert schemas.errors(one) == [], str(block)


@pytest.mark.parametrize(
    "block", [block for block in MANIFESTS if "part" in block.marks], ids=str
)
def test_a_part_of_a_policy_has_the_policys_fields(block: Block) -> None:
    """The mark `<!-- part: KIND -->` is before a block with some fields of a kind."""
    (part,) = _documents(block)
    assert schemas.part_errors(part, block.marks["part"]) == [], str(block)


@pytest.mark.parametrize("block", MANIFESTS, ids=str)
def test_a_fragment_says_what_it_is_a_part_of(block: Block) -> None:
    is_whole = any(schemas.objects(_documents(block)))
    marks = {"part", "file"} & block.marks.keys()
    assert is_whole or marks, (
        f"{block}: put <!-- part: KIND --> before what is a part of a kind of ours, "
        "<!-- file: WHOSE --> before what is of a file of somebody else's"
    )


def test_every_file_and_example_that_is_named_exists() -> None:
    for page in sorted({block.file for block in blocks("sh")}):
        for name in re.findall(
            r"(?<![\w/$}\"])(?:examples|docs|tests|package)/[\w./-]+\w",
            page.read_text(),
        ):
            # test_links.py checks links to pages.
            is_there = name.endswith(".md") or (ROOT / name).exists()
            assert is_there, f"{page.name} names {name}"


def test_an_unknown_field_and_a_wrong_value_are_found() -> None:
    claim = {
        "apiVersion": "platform.acme.io/v1alpha1",
        "kind": "GpuDevWorkspaceClaim",
        "metadata": {"name": "x"},
        "spec": {"parameters": {"owner": "alice", "instanceTyp": "g4dn.xlarge"}},
    }
    assert any("instanceTyp" in error for error in schemas.errors(claim))
    claim["spec"] = {"parameters": {"owner": 1, "instanceType": "g4dn.xlarge"}}
    assert any("owner" in error for error in schemas.errors(claim))
    claim["spec"] = {"parameters": {"owner": "alice", "region": "Virginia"}}
    assert any("region" in error for error in schemas.errors(claim))
