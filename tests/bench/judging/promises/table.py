"""Promises and figures for people."""

from promises.bar import Bar

Row = tuple[str, ...]


def bars(own: str, promises: list[Bar]) -> str:
    """Each promise: one's own figure, the other one, their ratio, and the bar."""
    titles = ("", own, "other", "ratio", "bar", "")
    return aligned([titles, *(_bar(one) for one in promises)])


def missed(promises: list[Bar]) -> list[str]:
    """A message for people about each promise that is not kept."""
    return [
        f"missed: {one.what} is {one.compared:.3g}, and not {one.bound}"
        for one in promises
        if not one.is_met
    ]


def aligned(rows: list[Row]) -> str:
    """The first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        cells = [first.ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(others, widths[1:])]
        lines.append("  ".join(cells).rstrip())
    return "".join(f"{line}\n" for line in lines)


def _bar(one: Bar) -> Row:
    other = f"{one.other:.3g} {one.unit}" if one.other else ""
    ratio = f"{one.compared:.2f}" if one.beside else ""
    kept = "met" if one.is_met else "missed"
    return (one.what, f"{one.own:.3g} {one.unit}", other, ratio, one.bound, kept)
