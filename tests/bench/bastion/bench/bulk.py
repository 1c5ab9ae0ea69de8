"""How long a gibibyte takes."""

import subprocess
import time

from bench.connects import Failed, forwarded
from bench.figures import GIB
from bench.stage import Stage
from bench.ways import Way


def in_turns(
    stage: Stage, rounds: int
) -> tuple[dict[Way, list[float]], dict[Way, list[float]]]:
    """Seconds from a workspace, and to it, by all ways."""
    down: dict[Way, list[float]] = {way: [] for way in Way}
    up: dict[Way, list[float]] = {way: [] for way in Way}
    with forwarded(stage, 0) as port:
        for _ in range(rounds):
            for way in Way:
                flags = port if way is Way.FORWARD else ()
                line = stage.line(way, 0, f"head -c {GIB} /dev/zero", flags=flags)
                down[way].append(_carried(line, "/dev/null"))
                line = stage.line(way, 0, "wc -c", flags=flags)
                up[way].append(_carried(line, "/dev/zero"))
    return down, up


def _carried(line: list[str], device: str) -> float:
    """Runs ssh with a device in the place of the other end. Returns its duration."""
    is_upload = device == "/dev/zero"
    began = time.perf_counter()
    if is_upload:
        head = ["head", "-c", str(GIB), device]
        with subprocess.Popen(head, stdout=subprocess.PIPE) as source:
            ran = subprocess.run(line, stdin=source.stdout, capture_output=True)
    else:
        with open(device, "wb") as sink:
            ran = subprocess.run(line, stdout=sink, stderr=subprocess.PIPE)
    took = time.perf_counter() - began
    is_whole = not is_upload or ran.stdout.strip() == str(GIB).encode()
    if ran.returncode != 0 or not is_whole:
        raise Failed(f"{line}: {ran.returncode} {ran.stderr.decode()}")
    return took
