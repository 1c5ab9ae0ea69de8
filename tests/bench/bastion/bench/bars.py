"""What the bastion promises, and whether it keeps it."""

from promises.bar import Bar
from promises.statistic import median

from bench.figures import MIB, Arrivals, Figures
from bench.ways import Way

# The longest connect of a hundred while a hundred people type, in seconds.
LOADED = 2.0


def decisive(arrivals: list[Arrivals]) -> Arrivals:
    """The arrivals that decide: at the highest rate, or at the highest one at which the jump
    host stays below the limit."""
    for one in arrivals:
        if one.p99(Way.BASTION) < LOADED or one.p99(Way.JUMP) < LOADED:
            return one
    return arrivals[-1]


def of(figures: Figures) -> list[Bar]:
    """All promises."""
    loaded = decisive(figures.arrivals)
    crowd, memory = figures.crowd, figures.memory
    seconds = {way: median(took) for way, took in figures.connects.items()}
    commands = {word: median(took) for word, took in figures.commands.items()}

    def ratio(
        what: str, unit: str, own: float, beside: Way, other: float, limit: float
    ) -> Bar:
        return Bar(what, unit, own, beside.value, other, limit)

    bars = [
        ratio(
            f"connect, p50, beside {way.value}",
            "ms",
            seconds[Way.BASTION] * 1e3,
            way,
            seconds[way] * 1e3,
            limit,
        )
        for way, limit in ((Way.JUMP, 1.2), (Way.FORWARD, 0.7))
    ]
    bars += [
        Bar(
            f"command `{word}`, p50, beside sshd's `true`",
            "ms",
            commands[word] * 1e3,
            Way.JUMP.value,
            commands["true"] * 1e3,
            1.2,
        )
        for word in ("whoami", "list")
    ]
    bars += [
        Bar(
            f"connect with typing people, {loaded.rate:g}/s, p99",
            "s",
            loaded.p99(Way.BASTION),
            "",
            loaded.p99(Way.JUMP),
            LOADED,
        ),
        Bar("at once: who is not in", "", crowd.failed[Way.BASTION], "", 0.0, 0.0),
        ratio(
            "at once: until all are in",
            "s",
            median(crowd.total[Way.BASTION]),
            Way.JUMP,
            median(crowd.total[Way.JUMP]),
            1.3,
        ),
    ]
    bars += [
        ratio(
            f"keystroke, added to direct, p{percent}",
            "ms",
            figures.added(Way.BASTION, percent) * 1e3,
            Way.JUMP,
            figures.added(Way.JUMP, percent) * 1e3,
            limit,
        )
        for percent, limit in ((50, 1.25), (99, 2.0))
    ]
    bars += [
        Bar(
            f"1 GiB {direction}, beside {way.value}",
            "MiB/s",
            figures.speed(took, Way.BASTION),
            way.value,
            figures.speed(took, way),
            limit,
            is_least=True,
        )
        for direction, took in (("down", figures.down), ("up", figures.up))
        for way, limit in ((Way.JUMP, 0.8), (Way.FORWARD, 2.0))
    ]
    return [
        *bars,
        Bar(
            "idle connection, PSS",
            "MiB",
            memory.connection[Way.BASTION] / MIB,
            "",
            0.0,
            8.0,
        ),
        Bar(
            f"broker with {memory.connections}, PSS",
            "MiB",
            memory.broker[1] / MIB,
            "",
            0.0,
            80.0,
        ),
    ]
