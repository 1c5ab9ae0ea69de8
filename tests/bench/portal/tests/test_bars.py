"""Each promise of the portal can be broken on its own."""

from dataclasses import replace
from typing import Any

import pytest
from promises import table

from bench import bars, report
from bench.app import Scores, Scripts
from bench.bars import KIB
from bench.figures import Figures
from bench.load import Answer
from bench.pages import Pages, Rest
from bench.process import MIB
from bench.reads import Reads


def asked(answers: int) -> Answer:
    latency = {"p50Ms": 1.0, "p99Ms": 2.0}
    return {"answers": answers, "seconds": 10.0, "bytesEach": 300, "latency": latency}


def reads(claims: int, portal: int, bff: int, calls: float = 0.0) -> Reads:
    return Reads(claims, [asked(portal)], [asked(bff)], calls, 1.0)


def changed(p50: float = 5.0, p99: float = 20.0, lost: int = 0) -> Answer:
    def summary(p50: float, p99: float) -> Answer:
        return {"count": 9, "p50Ms": p50, "p99Ms": p99}

    return {
        "bare": summary(4.0, 18.0),
        "browsers": summary(p50, p99),
        "writes": summary(6.0, 30.0),
        "lost": lost,
        "superseded": 0,
    }


def fall(**changes: Any) -> Answer:
    return {
        "live": {"p50Ms": 4000.0, "maximumMs": 10_000.0},
        "absent": 0,
        "wrong": 0,
        "signedOut": 0,
        "mostRequests": 3,
        "requests": 3000,
        **changes,
    }


PAGES = Pages(
    count=1000,
    alone=20 * MIB,
    full=20 * MIB + 1000 * 40 * KIB,
    most=80 * MIB,
    opened={"seconds": 5.0},
    rest=Rest(300.0, 5, 0.01),
    quiet=changed(),
    stalled=changed(p50=6.0, p99=24.0),
    after=changed(),
    resumed={"untold": 0},
    flood={"behind": 0, "changes": 4200, "seconds": 20.0},
    fall=fall(),
)
SCORES = Scores(
    "/", "mobile", [{"performance": 90.0, "accessibility": 100.0} for _ in range(5)]
)
KEPT = Figures(
    reads=[reads(100, 800, 100), reads(1000, 200, 10)],
    pages=PAGES,
    preview={"latency": {"count": 100, "p50Ms": 20.0, "p95Ms": 60.0}},
    scripts=Scripts(120 * KIB, 260 * KIB),
    image=15 * MIB,
    scores=[SCORES],
)


def broken(figures: Figures) -> list[str]:
    return [one.what for one in bars.of(figures) if not one.is_met]


def test_a_portal_as_promised_breaks_no_promise() -> None:
    assert broken(KEPT) == []
    assert table.missed(bars.of(KEPT)) == []


@pytest.mark.parametrize(
    ("changes", "promise"),
    [
        ({"alone": 19 * MIB}, "RSS of each page"),
        ({"most": 80 * MIB + 1}, "RSS with 1000 pages"),
        ({"rest": Rest(300.0, 6, 0.01)}, "1000 pages at rest: lists"),
        (
            {"quiet": changed(p99=118.1), "stalled": changed(p99=24.0)},
            "change to browser, p99, 1000 pages",
        ),
        ({"after": changed(lost=1)}, "changes that a page was not told"),
        (
            {"flood": {**PAGES.flood, "behind": 1}},
            "changes that a page was not told",
        ),
        (
            {"stalled": changed(p50=6.1)},
            "change to browser, p50, beside pages that do not read",
        ),
        (
            {"stalled": changed(p99=24.1)},
            "change to browser, p99, beside pages that do not read",
        ),
        (
            {"resumed": {"untold": 1}},
            "pages that did not read, without reset",
        ),
        ({"fall": fall(absent=1)}, "portal killed: not live again"),
        ({"fall": fall(signedOut=1)}, "portal killed: not live again"),
        (
            {"fall": fall(live={"p50Ms": 1.0, "maximumMs": 10_001.0})},
            "portal killed: until the last is live",
        ),
        ({"fall": fall(mostRequests=4)}, "portal killed: requests of each"),
        ({"fall": fall(wrong=1)}, "portal killed: not right in the end"),
    ],
)
def test_a_promise_about_open_pages_that_is_not_kept_is_named(
    changes: dict[str, Any], promise: str
) -> None:
    figures = replace(KEPT, pages=replace(PAGES, **changes))
    assert broken(figures) == [promise]
    (line,) = table.missed(bars.of(figures))
    assert line.startswith(f"missed: {promise} is ")


@pytest.mark.parametrize(
    ("changes", "promise"),
    [
        ({"reads": [reads(100, 799, 100)]}, "GET, 100 claims"),
        ({"reads": [reads(1000, 199, 10)]}, "GET, 1000 claims"),
        (
            {"reads": [reads(1000, 200, 10, calls=0.002)]},
            "GET, 1000 claims: API calls per read",
        ),
        (
            {"scripts": Scripts(120 * KIB + 1, 200 * KIB)},
            "script of the first page",
        ),
        ({"scripts": Scripts(1, 260 * KIB + 1)}, "all script"),
        ({"image": 15 * MIB + 1}, "image"),
        ({"preview": {"latency": {"p95Ms": 60.1}}}, "preview, p95"),
    ],
)
def test_a_promise_about_reads_and_sizes_that_is_not_kept_is_named(
    changes: dict[str, Any], promise: str
) -> None:
    assert broken(replace(KEPT, **changes)) == [promise]


def test_the_median_of_performance_counts_and_the_worst_of_accessibility() -> None:
    def scores(*runs: tuple[float, float]) -> Scores:
        names = ("performance", "accessibility")
        return replace(SCORES, runs=[dict(zip(names, run)) for run in runs])

    once_slow = scores((50, 100), (90, 100), (95, 100))
    assert broken(replace(KEPT, scores=[once_slow])) == []
    often_slow = scores((50, 100), (89, 100), (95, 100))
    (missed,) = broken(replace(KEPT, scores=[often_slow]))
    assert missed == "Lighthouse, mobile, /: performance"
    once_wrong = scores((90, 100), (90, 96), (90, 100))
    (missed,) = broken(replace(KEPT, scores=[once_wrong]))
    assert missed == "Lighthouse, mobile, /: accessibility"


def test_the_tables_have_a_line_for_each_promise_and_each_figure() -> None:
    promises = bars.of(KEPT)
    shown = table.bars("portal", promises)
    for one in promises:
        assert one.what in shown
    for what in ("GET, 100 claims", "80/s", "10.0/s"):
        assert what in report.reads(KEPT)
    (line,) = [one for one in report.changes(KEPT).splitlines() if "do not" in one]
    assert line.split()[-5:] == ["4.0", "18.0", "6.0", "24.0", "30.0"]
    assert "polling every 5 s: 60000" in report.notes(KEPT)
    assert report.json(KEPT, promises)["pages"]["fall"]["mostRequests"] == 3
