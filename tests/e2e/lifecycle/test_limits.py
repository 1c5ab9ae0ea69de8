"""A workspace stops at its deadline. A late stop costs money, an early one costs work."""

from environment.waiting import until
from lifecycle.life import EXTEND, RESUME, Life, later, moment, now


def test_a_workspace_stops_after_its_lifetime_and_starts_when_asked(
    life: Life,
) -> None:
    life.commit({"maxLifetime": "20s"})
    instance = life.platform.ready(life.name)["instanceId"]
    stops_at = moment(life.lifecycle()["stopsAt"])
    assert life.scheduled() == ("True", "StopsWithin5Minutes")

    ended = life.ended(instance)
    status = life.phase("Expired")
    print(f"stopped {(ended - stops_at).total_seconds():.1f} s after its deadline")
    assert ended >= stops_at
    assert (ended - stops_at).total_seconds() < 10
    assert (
        "ssh" not in status and "publicIp" not in status and "instanceId" not in status
    )
    assert "annotate the claim with platform.acme.io/resume" in status["message"]
    assert life.lifecycle()["stoppedBecause"] == "MaxLifetime"

    life.annotate(RESUME, "please")
    again = life.platform.ready(life.name)
    assert again["instanceId"] != instance
    assert moment(life.lifecycle()["startedAt"]) > stops_at
    reasons = [reason for reason, _ in life.events()]
    assert reasons.count("WorkspaceStopped") == 1
    assert "WorkspaceInterrupted" not in reasons, "nothing was lost"


def test_a_workspace_ends_on_time_while_crossplane_looks_away(life: Life) -> None:
    """The test pauses the composite, so that Crossplane does not call the function. The
    provider knows the deadline, and ends the instance."""
    life.commit({"maxLifetime": "20s"})
    instance = life.platform.ready(life.name)["instanceId"]
    stops_at = moment(life.lifecycle()["stopsAt"])
    life.pause("true")
    ended = life.ended(instance)
    print(f"ended {(ended - stops_at).total_seconds():.1f} s after its deadline")
    assert 0 <= (ended - stops_at).total_seconds() < 10
    assert life.status()["phase"] == "Ready", "nobody has looked"
    life.pause("false")
    life.phase("Expired")
    reasons = [reason for reason, _ in life.events()]
    assert "WorkspaceInterrupted" not in reasons, "nothing was lost"
    life.annotate(RESUME, "please")
    assert life.platform.ready(life.name)["instanceId"] != instance


def test_more_time_is_given_before_and_after_the_end(life: Life) -> None:
    life.commit({"maxLifetime": "15s"})
    instance = life.platform.ready(life.name)["instanceId"]
    natural = life.lifecycle()["stopsAt"]
    life.annotate(EXTEND, later(30))
    until("the extension", lambda: life.lifecycle().get("stopsAt", natural) > natural)
    extended = moment(life.lifecycle()["stopsAt"])
    ended = life.ended(instance)
    assert 0 <= (ended - extended).total_seconds() < 10

    life.phase("Expired")
    life.annotate(EXTEND, later(600))
    back = life.platform.ready(life.name)
    assert back["lifecycle"]["startedAt"] < natural, "the same run goes on"


def test_a_claim_that_is_applied_every_second_changes_nothing(life: Life) -> None:
    """Argo CD's selfHeal may apply a claim this often, at worst."""
    manifest = life.commit({"maxLifetime": "15s"})
    instance = life.platform.ready(life.name)["instanceId"]
    generation = life.platform.workspace(life.name)["metadata"]["generation"]

    def applied_until(phase: str) -> None:
        def look() -> bool:
            life.platform.cluster.apply(manifest)
            return life.status().get("phase") == phase

        until(f"{phase}, applied again and again", look)

    applied_until("Expired")
    assert instance not in life.machines()
    for _ in range(10):
        life.platform.cluster.apply(manifest)
    assert life.status()["phase"] == "Expired" and life.machines() == []
    life.annotate(RESUME, "once")
    applied_until("Ready")
    found = life.platform.workspace(life.name)["metadata"]["generation"]
    assert found == generation, "the spec was never touched"


def test_a_stop_and_a_start_by_commit_take_seconds(life: Life) -> None:
    life.commit({})
    instance = life.platform.ready(life.name)["instanceId"]
    begun = now()
    life.commit({"state": "Stopped"})
    life.ended(instance)
    life.phase("Stopped")
    stopped = now()
    life.commit({"state": "Running"})
    life.platform.ready(life.name)
    print(
        f"stopped after {(stopped - begun).total_seconds():.1f} s, "
        f"back after {(now() - stopped).total_seconds():.1f} s"
    )


def test_a_lifetime_beyond_the_policy_is_refused_with_the_field(life: Life) -> None:
    life.commit({"maxLifetime": "15d"})
    seen = life.platform.condition(life.name, "ConfigResolved", "False")
    assert (
        "spec.parameters.lifecycle.maxLifetime: must be at most 14d" in seen["message"]
    )
    assert life.machines() == []


def test_what_is_left_of_a_stopped_workspace_goes_at_its_time(life: Life) -> None:
    life.commit({"maxLifetime": "5s", "deleteAfterStopped": "10s"})
    life.platform.ready(life.name)
    life.phase("Expired")
    until(
        "the pool to go",
        lambda: life.platform.cluster.all("spotpools", life.namespace) == [],
    )
    # Crossplane writes the status after it has deleted what is composed no more.
    until("the time of the end", lambda: life.status()["lifecycle"].get("deletedAt"))
    assert life.ec2.groups(life.namespace) == []
    life.annotate(RESUME, "from the beginning")
    life.platform.ready(life.name)
