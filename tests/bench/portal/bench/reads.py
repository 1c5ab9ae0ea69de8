"""How many lists a second both servers answer, in turns."""

from dataclasses import dataclass

from promises.statistic import median

from bench import calls, load
from bench.load import Answer
from bench.stage import BFF_USER, PORTAL_USER, TEAM, Stage

# How many ask at the same time.
CONNECTIONS = 8


@dataclass(frozen=True)
class Reads:
    """Answers of both servers with so many claims."""

    claims: int
    portal: list[Answer]
    bff: list[Answer]
    # Calls to the API server for each answer.
    portal_calls: float
    bff_lists: float

    @property
    def rates(self) -> tuple[float, float]:
        """Answers a second, of the portal and of the backend beside it."""
        portal, bff = (
            median(one["answers"] / one["seconds"] for one in answers)
            for answers in (self.portal, self.bff)
        )
        return portal, bff


def measure(stage: Stage, bff: str, claims: int, rounds: int, seconds: int) -> Reads:
    words = (
        *("--rows", str(claims), "--connections", str(CONNECTIONS)),
        *("--seconds", str(seconds)),
    )
    portal = f"{stage.places.portal}/api/workspaces"
    own: list[Answer] = []
    other: list[Answer] = []
    log = calls.Log(stage.cluster.audit)
    for _ in range(rounds):
        other.append(load.ran("ask", bff, *words))
        known = ("--authority", stage.authority, "--sessions", stage.readers)
        own.append(load.ran("ask", portal, *known, *words))
    made = log.calls()
    return Reads(
        claims,
        own,
        other,
        calls.of(made, PORTAL_USER) / answers(own),
        calls.of(made, BFF_USER, "list") / answers(other),
    )


def answers(all_: list[Answer]) -> int:
    return sum(one["answers"] for one in all_)


def in_turns(
    stage: Stage, bff: str, counts: tuple[int, ...], rounds: int, seconds: int
) -> list[Reads]:
    """Makes claims until there are so many, and measures, for each number of claims."""
    measured = []
    known = 0
    for count in counts:
        stage.claims(f"dev-{TEAM}", first=known, count=count - known)
        known = count
        measured.append(measure(stage, bff, count, rounds, seconds))
    return measured
