"""Everything that was measured."""

from dataclasses import dataclass

from promises.statistic import median, percentile

from bench.ways import Way

MIB = 1 << 20
GIB = 1 << 30

Took = dict[Way, list[float]]


@dataclass(frozen=True)
class Arrivals:
    """Connects that began at a rate while people typed: durations in seconds. A connect
    that failed took forever."""

    rate: float
    took: Took

    def p99(self, way: Way) -> float:
        return percentile(self.took[way], 99)


@dataclass(frozen=True)
class Crowd:
    """Connects that began at the same moment."""

    # Until the last one was in, in seconds, for each round.
    total: Took
    # How many failed, in all rounds.
    failed: dict[Way, int]


@dataclass(frozen=True)
class Memory:
    """Proportional set sizes in bytes."""

    # What one idle connection adds to sshd's side.
    connection: dict[Way, float]
    # The broker's, before the connections and with them.
    broker: tuple[float, float]
    connections: int


@dataclass(frozen=True)
class Figures:
    # Seconds until `true` has run in a workspace.
    connects: Took
    # Requests to the API server for each of these connects through the bastion.
    requests: float
    # Seconds of a command line that ends at the host in front: the bastion's `whoami`
    # and `list`, and `true` of the jump host.
    commands: dict[str, list[float]]
    # From the highest rate down.
    arrivals: list[Arrivals]
    crowd: Crowd
    # Seconds from a key to its echo.
    echoes: Took
    # Seconds of 1 GiB, from a workspace and to it.
    down: Took
    up: Took
    memory: Memory

    def added(self, way: Way, percent: int) -> float:
        """What a way adds to the echo of a key, in seconds."""
        direct = percentile(self.echoes[Way.DIRECT], percent)
        return percentile(self.echoes[way], percent) - direct

    def speed(self, took: Took, way: Way) -> float:
        """MiB a second."""
        return GIB / MIB / median(took[way])
