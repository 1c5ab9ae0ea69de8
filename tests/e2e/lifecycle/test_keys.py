"""Keys of people who leave: they open nothing on a machine that goes on running."""

from pathlib import Path

from cluster.workspaces import Key
from environment.waiting import until
from lifecycle.life import now
from lifecycle.machine import Machine


def test_a_removed_key_opens_nothing_within_a_minute_and_the_machine_stays(
    machine: Machine, tmp_path: Path
) -> None:
    other = Key.generate(tmp_path, "other")
    networks = {"allowedCidrs": [machine.here]}
    both = {"publicKeys": [other.public, machine.key.public], **networks}
    machine.commit({}, ssh=both)
    status = machine.logged_in()

    machine.commit({}, ssh={"publicKeys": [other.public], **networks})
    begun = now()

    def is_refused() -> bool:
        tried = machine.ssh("true")
        return tried.returncode == 255 and "Permission denied" in tried.stderr

    until("the removed key to open nothing", is_refused, 60)
    print(f"refused {(now() - begun).total_seconds():.1f} s after the commit")
    assert machine.status()["phase"] == "Ready"

    machine.key = other
    assert machine.run("id -un") == "developer"
    assert machine.machines() == [status["instanceId"]]
