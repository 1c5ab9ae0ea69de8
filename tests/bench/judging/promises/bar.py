"""One promise, and its figure."""

from dataclasses import dataclass
from math import nan
from typing import Any


@dataclass(frozen=True)
class Bar:
    """A promise: one's own figure beside another one, or beside a fixed limit."""

    what: str
    unit: str
    own: float
    # Whose figure it is compared with; empty for a fixed limit.
    beside: str
    other: float
    limit: float
    is_least: bool = False

    @property
    def compared(self) -> float:
        if not self.beside:
            return self.own
        # Beside nothing, no ratio says anything.
        return self.own / self.other if self.other > 0 else nan

    @property
    def is_met(self) -> bool:
        """Whether the promise is kept. A figure that is no number keeps none."""
        if self.is_least:
            return self.compared >= self.limit
        return self.compared <= self.limit

    @property
    def bound(self) -> str:
        sign = ">=" if self.is_least else "<="
        return f"{sign} {self.limit:g}{' x' if self.beside else ' ' + self.unit}"

    def json(self) -> dict[str, Any]:
        return {
            "what": self.what,
            "unit": self.unit,
            "own": self.own,
            **({"beside": self.beside, "other": self.other} if self.beside else {}),
            "compared": self.compared,
            "atLeast" if self.is_least else "atMost": self.limit,
            "met": self.is_met,
        }
