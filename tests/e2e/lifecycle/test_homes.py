"""Homes keep the owner's files when a workspace stops, moves or is interrupted."""

import os
from dataclasses import replace

import pytest

from cluster.workspaces import HOME as PODS_HOME
from cluster.workspaces import Workspaces
from environment.emulator import Emulator
from environment.waiting import until
from lifecycle.life import now
from lifecycle.machine import Machine

# Stops and resumes. Two workspaces take turns, or four with pods.
ROUNDS = int(os.environ.get("ROUNDS", "10"))
KEPT = {"home": {"sizeGiB": 1}}
HOME = {**KEPT, "capacityType": "Spot"}
FILL = "dd if=/dev/urandom of=thesis bs=64k count=16 status=none && sha256sum thesis"
HOOK = "#!/bin/sh\necho $WORKSPACE_STOP_REASON >>$HOME/saved\n"


# The provider remembers, for all workspaces, of which type a zone has no capacity. So a
# test whose zone has no capacity has an instance type that no other test uses, and never
# runs beside itself.
@pytest.mark.parametrize(
    ("market", "instance_type"),
    [
        pytest.param(market, type_, marks=pytest.mark.xdist_group(f"zones of {type_}"))
        for market, type_ in [("Spot", "g5.xlarge"), ("OnDemand", "g5.2xlarge")]
    ],
)
def test_a_home_survives_stops_and_resumes_and_a_zone_without_capacity(
    machine: Machine, emulator: Emulator, market: str, instance_type: str
) -> None:
    home = {**KEPT, "capacityType": market, "instanceType": instance_type}
    # Crossplane accepts four events of a composite a second in the long run. A stop and
    # a resume make about a hundred events, so two workspaces take turns.
    machines = [machine, replace(machine, name="alice-second")]
    first, written = [], []
    for one in machines:
        one.commit({}, **home)
    for one in machines:
        first.append(one.logged_in())
        one.await_home()
        written.append(one.run(FILL))
    zones = {first[0]["zone"]}
    for number in range(ROUNDS):
        turn = number % len(machines)
        one, before = machines[turn], first[turn]
        one.commit({"state": "Stopped"}, **home)
        one.phase("Stopped", seconds=120)
        assert before["instanceId"] not in one.machines()
        # A turn of the first workspace.
        if number == ROUNDS // 4 * 2:
            emulator.fault(
                operation="CreateFleet",
                code="InsufficientInstanceCapacity",
                match={
                    "AvailabilityZone": before["zone"],
                    "InstanceType": instance_type,
                },
            )
        begun = now()
        one.commit({"state": "Running"}, **home)
        status = one.logged_in(seconds=300)
        one.await_home(before["hostKeys"])
        took = (now() - begun).total_seconds()
        if turn == 0:
            zones.add(status["zone"])
        first[turn] = {**before, "instanceId": status["instanceId"]}
        print(f"{number + 1}: back after {took:.1f} s in {status['zone']}")
        assert one.run("sha256sum thesis") == written[turn]
        emulator.clear_faults()
    assert len(zones) == 2, "the home followed capacity once"


def test_homes_of_pods_survive_stops_and_resumes(
    alice: Workspaces, composition: str
) -> None:
    # Crossplane accepts four events of a composite a second in the long run. A stop and
    # a resume make about a hundred events, so four workspaces take turns.
    names = [f"kept-{number}" for number in range(4)]
    for name in names:
        alice.claim(name, composition=composition, home=PODS_HOME)
    before = {name: alice.ready(name, seconds=180) for name in names}
    written = {name: alice.run(name, FILL) for name in names}
    for number in range(ROUNDS):
        name = names[number % len(names)]
        alice.change(name, lifecycle={"state": "Stopped"})
        alice.phase(name, "Stopped", seconds=120)
        assert alice.pods(name) == []
        begun = now()
        alice.change(name, lifecycle={"state": "Running"})
        status = alice.ready(name, seconds=120)
        print(f"{number + 1}: back after {(now() - begun).total_seconds():.1f} s")
        assert alice.run(name, "sha256sum thesis") == written[name]
        assert status["hostKeys"] == before[name]["hostKeys"]


def test_an_interruption_runs_the_hook_and_brings_the_home_back(
    machine: Machine, emulator: Emulator
) -> None:
    machine.commit({}, **HOME)
    status = machine.logged_in()
    machine.await_home()
    machine.run(
        "mkdir -p .config/gpu-workspace && cat > .config/gpu-workspace/pre-stop "
        f"<<'EOF'\n{HOOK}EOF\nchmod +x .config/gpu-workspace/pre-stop"
    )
    written = machine.run(FILL)
    lost = status["instanceId"]
    begun = now()
    emulator.interrupt(lost, notice_seconds=20)
    until(
        "another instance",
        lambda: machine.status().get("instanceId") not in (None, lost),
        seconds=180,
    )
    machine.logged_in(seconds=300)
    machine.await_home(status["hostKeys"])
    print(f"logged in again {(now() - begun).total_seconds():.1f} s after the notice")
    assert machine.run("cat saved") == "interruption"
    assert machine.run("sha256sum thesis") == written
