"""A log of the run with times. pytest shows it if the run fails."""

import random
import time
from threading import Lock


class Journal:
    """The log, and the random generators of the run: one for each user."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._began = time.monotonic()
        self._lock = Lock()

    def dice(self, user: str) -> random.Random:
        return random.Random(f"{self.seed} {user}")

    def note(self, text: str) -> None:
        with self._lock:
            print(f"{self.seconds():7.2f} {text}", flush=True)

    def seconds(self) -> float:
        return time.monotonic() - self._began
