"""What the portal promises, and whether it keeps it."""

from promises.bar import Bar

from bench.app import Scores, Scripts
from bench.figures import Figures
from bench.load import Answer
from bench.pages import PER_SECOND, Pages
from bench.process import MIB
from bench.reads import Reads

KIB = 1024
# The least that the portal answers of what the backend beside it answers, by the number of claims.
FASTER = {100: 8.0, 1000: 20.0}
# The most calls to the API server for each read. One in a thousand is what the portal does by the clock.
CALLS = 0.001
# How much longer than a bare watch of the API server a browser waits for a change, in milliseconds.
LATER = 100.0
# How much pages that do not read may change the latency of the others.
CHANGED = 1.2
# The longest of twenty previews, in milliseconds.
PREVIEW = 60.0
# The least score of performance, by the form of the device.
PERFORMANCE = {"mobile": 90.0, "desktop": 98.0}


def of(figures: Figures) -> list[Bar]:
    """All promises."""
    bars = [bar for reads in figures.reads for bar in of_reads(reads)]
    bars += of_pages(figures.pages)
    waited = figures.preview["latency"]["p95Ms"]
    bars.append(at_most("preview, p95", "ms", waited, PREVIEW))
    bars += of_scripts(figures.scripts)
    bars.append(at_most("image", "MiB", figures.image / MIB, 15))
    return bars + [bar for scores in figures.scores for bar in of_scores(scores)]


def at_most(what: str, unit: str, own: float, limit: float) -> Bar:
    return Bar(what, unit, own, "", 0.0, limit)


def of_reads(reads: Reads) -> list[Bar]:
    portal, bff = reads.rates
    what = f"GET, {reads.claims} claims"
    least = FASTER[reads.claims]
    return [
        Bar(what, "/s", portal, "backend", bff, least, is_least=True),
        at_most(f"{what}: API calls per read", "", reads.portal_calls, CALLS),
    ]


def of_pages(pages: Pages) -> list[Bar]:
    many, fall = f"{pages.count} pages", pages.fall
    absent = fall["absent"] + fall["signedOut"]
    return [
        at_most(f"{many} at rest: lists", "", pages.rest.lists, 5),
        at_most(
            f"change to browser, p99, {many}",
            "ms",
            p99(pages.quiet),
            p99(pages.quiet, "bare") + LATER,
        ),
        at_most("changes that a page was not told", "", lost(pages), 0),
        *beside_those_that_stop(pages),
        at_most(
            "pages that did not read, without reset", "", pages.resumed["untold"], 0
        ),
        at_most(f"RSS with {many}", "MiB", pages.most / MIB, 80),
        at_most(
            "RSS of each page",
            "KiB",
            (pages.full - pages.alone) / KIB / pages.count,
            40,
        ),
        at_most("portal killed: not live again", "", absent, 0),
        at_most(
            "portal killed: until the last is live",
            "s",
            fall["live"]["maximumMs"] / 1e3,
            10,
        ),
        at_most("portal killed: requests of each", "", fall["mostRequests"], 3),
        at_most("portal killed: not right in the end", "", fall["wrong"], 0),
    ]


def beside_those_that_stop(pages: Pages) -> list[Bar]:
    """The latency while some pages do not read, beside that before and after, each as a multiple of that of
    the bare watch at the same time: the API server's own latency differs from minute to minute.
    """
    bars = []
    for percent in ("p50", "p99"):
        without = (
            above_bare(pages.quiet, percent) + above_bare(pages.after, percent)
        ) / 2
        beside = above_bare(pages.stalled, percent)
        what = f"change to browser, {percent}, beside pages that do not read"
        bars.append(Bar(what, "x bare", beside, "without them", without, CHANGED))
    return bars


def above_bare(changed: Answer, percent: str) -> float:
    return float(changed["browsers"][f"{percent}Ms"] / changed["bare"][f"{percent}Ms"])


def lost(pages: Pages) -> int:
    """Changes that a page was not told, in all phases."""
    in_phases = (pages.quiet, pages.stalled, pages.after)
    told: int = sum(one["lost"] for one in in_phases)
    return told + int(pages.flood["behind"])


def p99(changed: Answer, who: str = "browsers") -> float:
    return float(changed[who]["p99Ms"])


def of_scripts(scripts: Scripts) -> list[Bar]:
    return [
        at_most("script of the first page", "KiB", scripts.first_page / KIB, 120),
        at_most("all script", "KiB", scripts.all_ / KIB, 260),
    ]


def of_scores(scores: Scores) -> list[Bar]:
    what = f"Lighthouse, {scores.form}, {scores.path}"

    def at_least(category: str, own: float, limit: float) -> Bar:
        name = f"{what}: {category}"
        return Bar(name, "", own, "", 0.0, limit, is_least=True)

    return [
        at_least("performance", scores.of("performance"), PERFORMANCE[scores.form]),
        at_least("accessibility", scores.least("accessibility"), 100),
    ]
