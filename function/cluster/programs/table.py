"""Tables for people."""

from __future__ import annotations

from collections.abc import Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns as wide as what they hold."""
    lines = [[str(cell) for cell in row] for row in [head, *rows]]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    padded = ["  ".join(c.ljust(w) for c, w in zip(line, widths)) for line in lines]
    return "\n".join(line.rstrip() for line in padded)
