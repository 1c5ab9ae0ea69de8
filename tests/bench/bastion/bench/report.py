"""The figures as tables for people, and as JSON for programs."""

from typing import Any

from promises.bar import Bar
from promises.statistic import median, percentile
from promises.table import Row, aligned

from bench.figures import MIB, Figures
from bench.ways import Way


def ways(figures: Figures) -> str:
    """What was measured, by way."""
    titles = ("", *(way.value for way in Way))
    rows = [titles]
    for percent in (50, 99):
        rows.append(_of_ways(f"connect, p{percent}, ms", figures.connects, percent))
    for arrivals in figures.arrivals:
        what = f"connect with typing people, {arrivals.rate:g}/s"
        for percent in (50, 99):
            rows.append(
                _of_ways(f"{what}, p{percent}, s", arrivals.took, percent, scale=1)
            )
    rows.append(_of_ways("at once, s", figures.crowd.total, 50, scale=1))
    for percent in (50, 99):
        rows.append(_of_ways(f"echo of a key, p{percent}, ms", figures.echoes, percent))
    for what, took in (("down", figures.down), ("up", figures.up)):
        speeds = (f"{figures.speed(took, way):.0f}" for way in Way)
        rows.append((f"1 GiB {what}, MiB/s", *speeds))
    each = figures.memory.connection
    sizes = (f"{each[way] / MIB:.1f}" if way in each else "" for way in Way)
    rows.append(("idle connection, PSS, MiB", *sizes))
    return aligned(rows)


def notes(figures: Figures) -> str:
    """What has no other way beside it."""
    alone, full = (size / MIB for size in figures.memory.broker)
    took = ", ".join(
        f"`{word}` {median(took) * 1e3:.0f} ms"
        for word, took in figures.commands.items()
    )
    return (
        f"{figures.requests:.1f} requests to the API server for each connect; {took};\n"
        f"broker {alone:.1f} MiB, with {figures.memory.connections} connections {full:.1f} MiB"
    )


def json(figures: Figures, promises: list[Bar]) -> dict[str, Any]:
    """All figures. The names of the fields contain the units."""
    memory = figures.memory
    return {
        "connectSeconds": _named(figures.connects),
        "apiRequestsPerConnect": figures.requests,
        "commandSeconds": figures.commands,
        "arrivals": [
            {"perSecond": one.rate, "seconds": _named(one.took)}
            for one in figures.arrivals
        ],
        "atOnceSeconds": _named(figures.crowd.total),
        "atOnceFailed": _named(figures.crowd.failed),
        "echoSeconds": _named(figures.echoes),
        "gibibyteDownSeconds": _named(figures.down),
        "gibibyteUpSeconds": _named(figures.up),
        "idleConnectionBytes": _named(memory.connection),
        "brokerBytes": {"alone": memory.broker[0], "full": memory.broker[1]},
        "bars": [one.json() for one in promises],
    }


def _named(of: dict[Way, Any]) -> dict[str, Any]:
    return {way.value: figure for way, figure in of.items()}


def _of_ways(
    what: str, took: dict[Way, list[float]], percent: int, scale: float = 1e3
) -> Row:
    figures = (
        f"{percentile(took[way], percent) * scale:.2f}" if way in took else ""
        for way in Way
    )
    return (what, *figures)
