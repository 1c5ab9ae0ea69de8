"""Everything that was measured."""

from dataclasses import dataclass

from bench.app import Scores, Scripts
from bench.pages import Pages
from bench.reads import Reads


@dataclass(frozen=True)
class Figures:
    # In the order of the numbers of claims.
    reads: list[Reads]
    pages: Pages
    scripts: Scripts
    # Of the image, in bytes.
    image: int
    # None if no browser was asked.
    scores: list[Scores]
