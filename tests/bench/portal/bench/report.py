"""The figures as tables for people, and as JSON for programs."""

from dataclasses import asdict
from typing import Any

from promises.bar import Bar
from promises.table import Row, aligned

from bench.figures import Figures
from bench.load import Answer
from bench.pages import Pages
from bench.process import MIB
from bench.reads import Reads


def reads(figures: Figures) -> str:
    titles = ("", "portal", "backend", "portal, p99", "backend, p99")
    return aligned([titles, *(_reads(one) for one in figures.reads)])


def _reads(one: Reads) -> Row:
    portal, bff = one.rates
    worst = [
        max(answer["latency"]["p99Ms"] for answer in answers)
        for answers in (one.portal, one.bff)
    ]
    return (
        f"GET, {one.claims} claims of {one.portal[0]['bytesEach'] / 1024:.0f} KiB",
        f"{portal:.0f}/s",
        f"{bff:.1f}/s",
        *(f"{milliseconds:.0f} ms" for milliseconds in worst),
    )


def changes(figures: Figures) -> str:
    titles = ("ms", "bare, p50", "p99", "browsers, p50", "p99", "writes, p99")
    pages = figures.pages
    phases = {
        f"change to {pages.count} pages": pages.quiet,
        "beside pages that do not read": pages.stalled,
        "without those again": pages.after,
    }
    return aligned([titles, *(_changes(what, one) for what, one in phases.items())])


def _changes(what: str, one: Answer) -> Row:
    places = (("bare", 50), ("bare", 99), ("browsers", 50), ("browsers", 99))
    figures = [one[who][f"p{percent}Ms"] for who, percent in places]
    return (
        f"{what} ({one['browsers']['count']} sightings)",
        *(f"{figure:.1f}" for figure in [*figures, one["writes"]["p99Ms"]]),
    )


def notes(figures: Figures) -> str:
    """What has nothing beside it."""
    pages = figures.pages
    fall, rest = pages.fall, pages.rest
    polls = sum(one.bff_lists for one in figures.reads) / len(figures.reads)
    polled = pages.count * rest.seconds / 5 * polls
    previews = figures.preview["latency"]
    return (
        f"{previews['count']} previews: p50 {previews['p50Ms']:.0f} ms, "
        f"p95 {previews['p95Ms']:.0f} ms\n"
        f"{pages.count} pages came in {pages.opened['seconds']:.0f} s; at rest for "
        f"{rest.seconds:.0f} s: {rest.lists} lists (polling every 5 s: {polled:.0f}), "
        f"{rest.busy:.1%} of a processor\n"
        f"portal {pages.alone / MIB:.1f} MiB, with {pages.count} pages "
        f"{pages.full / MIB:.1f} MiB, at most {pages.most / MIB:.1f} MiB\n"
        f"killed: live again after {_seconds(fall, 'p50Ms')} (p50), "
        f"{_seconds(fall, 'maximumMs')} (last), {fall['requests']} requests\n"
        f"{pages.flood['changes']} changes at once in {pages.flood['seconds']:.0f} s; "
        f"{superseded(pages)} sightings of a later change only"
    )


def _seconds(fall: Answer, which: str) -> str:
    return f"{fall['live'][which] / 1e3:.1f} s"


def superseded(pages: Pages) -> int:
    phases = (pages.quiet, pages.stalled, pages.after)
    return sum(one["superseded"] for one in phases)


def json(figures: Figures, promises: list[Bar]) -> dict[str, Any]:
    """All figures. The names of the fields contain the units, or count bytes."""
    return {**asdict(figures), "bars": [one.json() for one in promises]}
