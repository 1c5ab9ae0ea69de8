"""Each command in the documentation is run by a test, or has a mark with its needs."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from documents import suites
from documents.markdown import ROOT, Block, blocks, parse

# The needs that no test has: an AWS account, or the reader's own cluster, registry and
# network.
NEEDS = {"aws", "cluster"}
# The suites that run a block that is marked `test:`.
OFFLINE = "offline"
DRY_RUN = "dry-run"
ON_CLUSTER = {
    *("install", "troubleshooting", "upgrade", "remove", "use", "devctl", "portal"),
    *("backup", "restore", "move-home"),
}
# Those that call EC2's API: the suite runs them against the emulator.
CALL_AWS = {"move-home"}

COMMANDS = blocks("sh")


@pytest.mark.parametrize("block", COMMANDS, ids=str)
def test_a_reader_never_runs_a_command_that_nobody_tried(block: Block) -> None:
    known = {OFFLINE, DRY_RUN} | ON_CLUSTER
    message = (
        f"{block}: put <!-- test: SUITE --> (one of {sorted(known)}), "
        f"<!-- tested: FILE --> or <!-- needs: WHAT --> ({sorted(NEEDS)}) before the block"
    )
    ways = [way for way in ("test", "tested", "needs") if way in block.marks]
    assert len(ways) == 1, message
    assert set(block.suites()) <= known, message
    assert block.marks.get("needs", "aws") in NEEDS, message
    if "variables" in block.marks:
        assert suites.assigned([block]), f"{block}: no variable is exported"


@pytest.mark.parametrize(
    "block", [block for block in COMMANDS if "tested" in block.marks], ids=str
)
def test_what_is_tested_elsewhere_is_found_there(block: Block) -> None:
    """The file that the block's mark names has every flag of the block."""
    test = (ROOT / block.marks["tested"]).read_text()
    for word in re.findall(r"(?<!\S)--?[a-z][a-z-]*", block.text):
        assert word in test, f"{block}: {block.marks['tested']} has no {word}"


@pytest.mark.parametrize("block", COMMANDS, ids=str)
def test_every_command_is_the_shells_language(block: Block) -> None:
    bash = shutil.which("bash") or pytest.fail("no bash on PATH: apt-get install bash")
    checked = subprocess.run(
        [bash, "-n"], input=block.text, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, f"{block}: {checked.stderr}"


@pytest.mark.parametrize(
    "block", [block for block in COMMANDS if OFFLINE in block.suites()], ids=str
)
def test_what_needs_no_cluster_runs_right_here(block: Block, tmp_path: Path) -> None:
    ran = _shell(block.text, tmp_path)
    assert ran.returncode == 0, f"{block}:\n{ran.stdout}{ran.stderr}"


@pytest.mark.parametrize(
    "block", [block for block in COMMANDS if DRY_RUN in block.suites()], ids=str
)
def test_make_has_every_target_that_is_named(block: Block, tmp_path: Path) -> None:
    for line in block.text.splitlines():
        command = line.split("#")[0].strip()
        assert command.startswith("make "), f"{block}: only make is run dry"
        ran = _shell(f"make --dry-run {command[5:]}", tmp_path)
        assert ran.returncode == 0, f"{block}: {command}:\n{ran.stderr}"


def test_every_suite_for_the_cluster_is_a_script_and_touches_no_aws() -> None:
    for name in sorted(ON_CLUSTER):
        found = suites.suite(name)
        script = suites.script(found, {})
        calls_aws = re.search(r"(^|\$\()\s*aws ", script, re.MULTILINE) is not None
        assert calls_aws == (name in CALL_AWS), name
        checked = subprocess.run(
            ["bash", "-n"], input=script, capture_output=True, text=True, check=False
        )
        assert checked.returncode == 0, f"{name}: {checked.stderr}"


def test_install_ends_with_a_workspace_that_is_ready() -> None:
    *_, last = suites.suite("install")
    waits = [one for one in suites.suite("install") if "kubectl wait" in one.text]
    assert "--for=condition=Ready" in waits[-1].text
    assert last.file == ROOT / "docs/install.md"


def test_a_caller_sets_what_a_page_leaves_open_and_nothing_else() -> None:
    (block,) = parse(
        ROOT / "docs/page.md",
        "<!-- test: install -->\n<!-- variables -->\n```sh\nexport WHERE=there\n```\n",
    )
    then = Block(block.file, 9, "sh", 'echo "$WHERE"\n', {"test": "install"})
    script = suites.script([block, then], {"WHERE": "it's here"})
    ran = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines()[-1] == "it's here"
    with pytest.raises(ValueError, match="OTHER"):
        suites.script([block, then], {"OTHER": "x"})


def test_a_command_that_fails_ends_its_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    marks = {"test": "install"}
    found = [Block(ROOT / "docs/page.md", n, "sh", t, marks) for n, t in _FAILING]
    monkeypatch.setattr(suites, "suite", lambda name: found)
    with pytest.raises(suites.Failed) as failed:
        suites.run("install")
    assert "docs/page.md:2" in str(failed.value)
    assert "never" not in str(failed.value)


_FAILING = [(1, "echo begun\n"), (2, "false | true\n"), (3, "echo never\n")]


def test_the_version_of_crossplane_that_is_asked_for_is_the_packages() -> None:
    page = (ROOT / "docs/install.md").read_text()
    for file in sorted((ROOT / "package").glob("*/crossplane.yaml")):
        spec = yaml.safe_load(file.read_text())["spec"]
        least = re.sub(r"[^v0-9.].*$", "", spec["crossplane"]["version"].lstrip(">="))
        assert f"Crossplane {least} or later" in page, f"{file} asks for {least}"


def _shell(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a script in the repository's root, with `folder` for its home and its
    temporary files."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "TMPDIR": str(folder),
    }
    return subprocess.run(
        ["bash", "-c", f"set -euo pipefail\n{script}"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
