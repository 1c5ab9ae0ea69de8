"""docs/use.md, as its reader runs it, on an instance that boots."""

from pathlib import Path

from documents import suites
from lifecycle.machine import Machine


def test_the_commands_of_the_page_for_users_answer(
    machine: Machine, tmp_path: Path
) -> None:
    machine.commit({"maxLifetime": "2h"})
    presets = {
        "NAMESPACE": machine.platform.namespace,
        "CLAIM": machine.name,
        "SSH_KEY": str(machine.key.private),
        "SSH_FOLDER": str(tmp_path),
    }
    said = suites.run("use", presets)
    print(said)
    assert "4.8.0 1.13.0" in said
    assert "/opt/workspace/bin/python" in said
    assert "gpu-workspace setup done" in said
