"""Each promise of the bastion can be broken on its own."""

from dataclasses import replace
from math import inf

import pytest

from promises import table
from promises.statistic import percentile

from bench import bars, report
from bench.figures import GIB, MIB, Arrivals, Crowd, Figures, Memory
from bench.ways import Way


def took(*seconds: float) -> dict[Way, list[float]]:
    """The figures of the ways in their order."""
    return {way: [one] for way, one in zip(Way, seconds)}


KEPT = Figures(
    connects=took(0.6, 0.5, 1.0, 0.3),
    requests=2,
    commands={"whoami": [0.3], "list": [0.31], "true": [0.3]},
    arrivals=[Arrivals(5.0, took(1.9, 1.8))],
    crowd=Crowd(took(10.0, 9.0), {Way.BASTION: 0, Way.JUMP: 3}),
    echoes=took(0.003, 0.003, 0.004, 0.001),
    down=took(10.0, 9.0, 25.0, 5.0),
    up=took(10.0, 9.0, 25.0, 5.0),
    memory=Memory({Way.BASTION: 7.0 * MIB, Way.JUMP: 3.0 * MIB}, (MIB, 70 * MIB), 100),
)


def broken(figures: Figures) -> list[str]:
    return [one.what for one in bars.of(figures) if not one.is_met]


def test_a_bastion_as_promised_breaks_no_promise() -> None:
    assert broken(KEPT) == []
    assert table.missed(bars.of(KEPT)) == []


@pytest.mark.parametrize(
    ("changed", "promises"),
    [
        ({"connects": took(0.61, 0.5, 1.0, 0.3)}, ["connect, p50, beside jump"]),
        (
            {"connects": took(0.6, 0.5, 0.8, 0.3)},
            ["connect, p50, beside port-forward"],
        ),
        (
            {"commands": {"whoami": [0.37], "list": [0.3], "true": [0.3]}},
            ["command `whoami`, p50, beside sshd's `true`"],
        ),
        (
            {"commands": {"whoami": [0.3], "list": [0.37], "true": [0.3]}},
            ["command `list`, p50, beside sshd's `true`"],
        ),
        (
            {"arrivals": [Arrivals(5.0, took(2.1, 1.0))]},
            ["connect with typing people, 5/s, p99"],
        ),
        (
            {"crowd": Crowd(took(10.0, 9.0), {Way.BASTION: 1, Way.JUMP: 0})},
            ["at once: who is not in"],
        ),
        (
            {"crowd": Crowd(took(12.0, 9.0), {Way.BASTION: 0, Way.JUMP: 0})},
            ["at once: until all are in"],
        ),
        (
            {"down": took(12.0, 9.0, 25.0, 5.0)},
            ["1 GiB down, beside jump"],
        ),
        (
            {"up": took(10.0, 9.0, 19.0, 5.0)},
            ["1 GiB up, beside port-forward"],
        ),
        (
            {"memory": replace(KEPT.memory, connection={Way.BASTION: 8.1 * MIB})},
            ["idle connection, PSS"],
        ),
        (
            {"memory": replace(KEPT.memory, broker=(MIB, 81 * MIB))},
            ["broker with 100, PSS"],
        ),
    ],
)
def test_a_promise_that_is_not_kept_is_named(
    changed: dict[str, object], promises: list[str]
) -> None:
    figures = replace(KEPT, **changed)  # type: ignore[arg-type]
    assert broken(figures) == promises
    (line,) = table.missed(bars.of(figures))
    assert line.startswith(f"missed: {promises[0]} is ")


def test_slow_echoes_break_the_promises_about_keys() -> None:
    slow = replace(KEPT, echoes=took(0.0036, 0.003, 0.004, 0.001))
    assert broken(slow) == ["keystroke, added to direct, p50"]
    # One of a hundred is slow.
    echoes = took(0.003, 0.003, 0.004, 0.001)
    echoes[Way.BASTION] = [0.003] * 98 + [0.0051] * 2
    assert broken(replace(KEPT, echoes=echoes)) == ["keystroke, added to direct, p99"]


def test_a_ratio_to_nothing_keeps_no_promise() -> None:
    nothing = replace(KEPT, echoes=took(0.001, 0.001, 0.004, 0.001))
    assert broken(nothing) == [
        "keystroke, added to direct, p50",
        "keystroke, added to direct, p99",
    ]


def test_the_highest_rate_that_the_jump_host_bears_decides() -> None:
    too_many = Arrivals(5.0, took(30.0, 29.0))
    borne = Arrivals(4.0, took(2.5, 1.9))
    both = replace(KEPT, arrivals=[too_many, borne])
    assert broken(both) == ["connect with typing people, 4/s, p99"]
    kept = replace(KEPT, arrivals=[too_many, Arrivals(3.0, took(1.9, 2.5))])
    assert broken(kept) == []
    # Nobody bears any rate.
    assert broken(replace(KEPT, arrivals=[too_many])) != []


def test_the_tables_have_a_line_for_each_promise_and_each_figure() -> None:
    promises = bars.of(KEPT)
    shown = table.bars("bastion", promises)
    for one in promises:
        assert one.what in shown
    by_way = report.ways(KEPT).splitlines()
    (line,) = [line for line in by_way if line.startswith("1 GiB down")]
    assert line.split()[-4:] == [f"{GIB / MIB / s:.0f}" for s in (10, 9, 25, 5)]


def test_one_slow_connect_in_a_hundred_does_not_show_in_p99() -> None:
    assert percentile([*range(1, 100), inf], 99) == 99
    assert percentile([*range(1, 99), inf, inf], 99) == inf
    assert percentile([], 50) == inf
