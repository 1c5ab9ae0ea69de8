"""Reads Markdown files: fenced blocks with their marks, headings, links."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

_FENCE = re.compile(r"^\s*(```+)\s*(\w*)\s*$")
_MARK = re.compile(r"^\s*<!--\s*([a-z]+)(?::\s*(.*?))?\s*-->\s*$")
_HEADING = re.compile(r"^(#+)\s+(.*?)\s*$")
_LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block. `marks` are the HTML comments before it, by their first word."""

    file: Path
    line: int
    language: str
    text: str
    marks: dict[str, str] = field(hash=False)

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line}"

    def suites(self) -> list[str]:
        """The suites that execute this block."""
        return [name.strip() for name in self.marks.get("test", "").split(",") if name]


@dataclass(frozen=True)
class Link:
    file: Path
    line: int
    target: str

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line} -> {self.target}"


def files() -> list[Path]:
    """The pages for users: the README, the security policy and the files of docs."""
    pages = sorted((ROOT / "docs").rglob("*.md"))
    return [ROOT / "README.md", ROOT / "SECURITY.md", *pages]


def blocks(language: str) -> list[Block]:
    """All blocks of a language, in the order of files and lines."""
    every = (block for file in files() for block in blocks_of(file))
    return [block for block in every if block.language == language]


@cache
def blocks_of(file: Path) -> tuple[Block, ...]:
    return tuple(parse(file, file.read_text()))


def parse(file: Path, text: str) -> Iterator[Block]:
    """The blocks of a text. A mark belongs to the next block if only blank lines or
    other marks are between them."""
    marks: dict[str, str] = {}
    lines = enumerate(text.splitlines(), start=1)
    for number, line in lines:
        if mark := _MARK.match(line):
            marks[mark[1]] = mark[2] or ""
        elif fence := _FENCE.match(line):
            indent = len(line) - len(line.lstrip())
            inside: list[str] = []
            for _, inner in lines:
                if inner.strip() == fence[1]:
                    break
                inside.append(inner[indent:] if inner[:indent].isspace() else inner)
            else:
                raise AssertionError(f"{file}:{number}: the block has no end")
            body = "".join(f"{inner}\n" for inner in inside)
            yield Block(file, number, fence[2], body, marks)
            marks = {}
        elif line.strip():
            marks = {}


def anchors(file: Path) -> set[str]:
    """The anchors that GitHub gives a file's headings."""
    found: dict[str, int] = {}
    for line in _prose(file):
        if heading := _HEADING.match(line[1]):
            words = re.sub(r"[^\w\- ]", "", heading[2].lower().replace("`", ""))
            anchor = words.replace(" ", "-")
            found[anchor] = found.get(anchor, -1) + 1
            if found[anchor]:
                found[f"{anchor}-{found[anchor]}"] = 0
    return set(found)


def links(file: Path) -> list[Link]:
    """The links of a file, without those in code."""
    found = []
    for number, line in _prose(file):
        for target in _LINK.findall(re.sub(r"`[^`]*`", "code", line)):
            found.append(Link(file, number, target))
    return found


def _prose(file: Path) -> Iterator[tuple[int, str]]:
    inside = False
    for number, line in enumerate(file.read_text().splitlines(), start=1):
        if _FENCE.match(line):
            inside = not inside
        elif not inside:
            yield number, line
