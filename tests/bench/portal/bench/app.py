"""The app: how large its scripts are, and what Lighthouse says of its pages."""

import gzip
import json
import os
import subprocess
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

from cluster import ROOT
from page import program
from promises.statistic import median

from bench import node
from bench.stage import Stage

DIST = ROOT / "portal/web/dist"
LIGHTHOUSE = Path(__file__).parents[1] / "lighthouse"
# The person's list with the form for a new workspace, and one workspace.
PATHS = ("/", "/workspaces/dev-person-000/workspace-0000")
PERSON = "person-000"
FORMS = ("mobile", "desktop")
CATEGORIES = ("performance", "accessibility", "best-practices")


@dataclass(frozen=True)
class Scripts:
    """Bytes of script, compressed."""

    first_page: int
    all_: int


class _Page(HTMLParser):
    """The scripts that a page loads at once."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        preloads = tag == "link" and named.get("rel") == "modulepreload"
        address = named.get("src" if tag == "script" else "href")
        if (tag == "script" or preloads) and address:
            self.scripts.append(address)


def scripts_of(html: str) -> list[str]:
    page = _Page()
    page.feed(html)
    return page.scripts


def compressed(path: Path) -> int:
    return len(gzip.compress(path.read_bytes(), mtime=0))


def scripts(dist: Path = DIST) -> Scripts:
    """The sizes of what was built. The worker with the stream belongs to the first page."""
    named = [
        dist / path.lstrip("/")
        for path in scripts_of((dist / "index.html").read_text())
    ]
    assert named, "the page loads no script"
    everything = list((dist / "assets").glob("*.js"))
    first = {*named, *(path for path in everything if path.name.startswith("worker"))}
    return Scripts(sum(map(compressed, first)), sum(map(compressed, everything)))


@dataclass(frozen=True)
class Scores:
    """Lighthouse's scores of one page on one kind of device, from 0 to 100, for each run."""

    path: str
    form: str
    runs: list[dict[str, float]]

    def of(self, category: str) -> float:
        return median(run[category] for run in self.runs)

    def least(self, category: str) -> float:
        return min(run[category] for run in self.runs)


def lighthouse(stage: Stage, runs: int) -> list[Scores]:
    """Audits the pages as a person who is signed in sees them."""
    return [
        Scores(path, form, [_run(stage, path, form) for _ in range(runs)])
        for form in FORMS
        for path in PATHS
    ]


def _run(stage: Stage, path: str, form: str) -> dict[str, float]:
    session = stage.session(PERSON)
    question = {
        "address": f"{stage.places.portal}{path}",
        "form": form,
        "categories": CATEGORIES,
        "cookie": session["cookie"],
        "program": program(),
    }
    done = subprocess.run(
        [node.NODE, LIGHTHOUSE / "audit.mjs"],
        input=json.dumps(question),
        stdout=subprocess.PIPE,
        check=True,
        text=True,
        env={**os.environ, "NODE_ENV": "production"},
    )
    scores: dict[str, float] = json.loads(done.stdout)
    return scores
