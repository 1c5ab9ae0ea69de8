"""Everything that was measured."""

from dataclasses import dataclass

from bench.app import Scores, Scripts
from bench.load import Answer
from bench.pages import Pages
from bench.reads import Reads


@dataclass(frozen=True)
class Figures:
    # In the order of the numbers of claims.
    reads: list[Reads]
    pages: Pages
    preview: Answer
    scripts: Scripts
    # Of the image, in bytes.
    image: int
    scores: list[Scores]
