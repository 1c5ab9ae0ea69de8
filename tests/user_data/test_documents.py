"""Checks of user data as text, without running it."""

from collections.abc import Callable
from functools import cache

import pytest

from machines import documents, goldens
from machines.machine import Machine

# EC2's limit of user data in bytes, before base64 encoding.
LIMIT = 16 * 1024

every_golden = pytest.mark.parametrize("case", goldens.names())


Findings = Callable[[str], list[str]]


@pytest.fixture(scope="module")
def machine(start: Callable[[], Machine]) -> Machine:
    return start()


@pytest.fixture(scope="module")
def schema(machine: Machine) -> Findings:
    """cloud-init's check of a document. Results are cached, because many goldens have
    the same document."""

    @cache
    def findings(document: str) -> list[str]:
        machine.write("/tmp/user-data", document)
        checked = machine.run("cloud-init", "schema", "-c", "/tmp/user-data")
        # cloud-init prints this because the machine has not booted.
        return [
            l for l in checked.stdout.splitlines() if "datasource not detected" not in l
        ]

    return findings


@pytest.fixture(scope="module")
def shellcheck(machine: Machine) -> Findings:
    @cache
    def findings(script: str) -> list[str]:
        checked = machine.run("shellcheck", "-", given=script, check=False)
        return [*checked.stdout.splitlines(), f"exit {checked.returncode}"]

    return findings


@every_golden
def test_cloud_init_accepts_it_and_finds_nothing_deprecated(
    schema: Findings, case: str
) -> None:
    for document in goldens.documents(case):
        (verdict,) = schema(document)
        assert verdict.startswith("Valid ")


@every_golden
def test_shellcheck_finds_nothing_in_its_scripts(
    shellcheck: Findings, case: str
) -> None:
    for document in goldens.documents(case):
        files = documents.parsed(document)["write_files"]
        scripts = [f["content"] for f in files if f["content"].startswith("#!")]
        assert scripts, "the setup is a script"
        for script in scripts:
            if script.startswith("#!/bin/sh\n"):
                assert shellcheck(script) == ["exit 0"]
            else:
                assert script.startswith("#!/usr/bin/python3\n")
                compile(script, case, "exec")


@every_golden
def test_ec2_takes_it(case: str) -> None:
    for document in goldens.documents(case):
        assert len(document.encode()) <= LIMIT


@pytest.mark.parametrize("case", goldens.rendered())
def test_the_owners_keys_are_in_it_and_no_others(case: str) -> None:
    for document in set(goldens.documents(case)) - goldens.observed(case):
        assert document.startswith(documents.HEADER)
        assert documents.keys(document) == goldens.public_keys(case)


@pytest.mark.parametrize("case", filter(goldens.is_v3, goldens.rendered()))
def test_all_keys_of_the_owner_are_in_tags_without_comments(case: str) -> None:
    bare = [" ".join(key.split()[:2]) for key in goldens.owners_keys(case)]
    assert goldens.keys_in_tags(case) == bare
    # With `requireAccess: false` the function starts machines that no key opens.
    assert bare or goldens.may_lack_keys(case)
