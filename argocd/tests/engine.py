"""Argo CD's own judgement of a resource: its command line, with our configuration."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

BUILD = "cargo xtask cluster binary argocd"

# When a condition changed, in the words of the cases. The scripts' patience is between.
AGES = {"now": timedelta(), "an hour ago": timedelta(hours=1)}

Resource = dict[str, Any]


@dataclass(frozen=True)
class Health:
    status: str
    message: str

    def __str__(self) -> str:
        return f"{self.status}: {self.message}" if self.message else self.status


def program() -> str:
    path = os.environ.get("ARGOCD")
    assert path, f"set ARGOCD to Argo CD's binary; it is built by: {BUILD}"
    assert Path(path).is_file(), f"{path} is missing; it is built by: {BUILD}"
    return str(Path(path).resolve())


def dated(resource: Resource) -> Resource:
    """The resource with times in place of words."""
    now = datetime.now(UTC)

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key: (
                    (now - AGES[item]).strftime("%Y-%m-%dT%H:%M:%SZ")
                    if key == "lastTransitionTime"
                    else walk(item)
                )
                for key, item in value.items()
            }
        return [walk(item) for item in value] if isinstance(value, list) else value

    walked: Resource = walk(resource)
    return walked


def assess(config_map: Path, resource: Resource, zone: str = "UTC") -> Health | None:
    """What Argo CD says of a resource; None where it has no opinion."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "resource.yaml"
        path.write_text(yaml.safe_dump(dated(resource)))
        done = subprocess.run(
            # One binary for all of Argo CD: its name says what it is.
            ["argocd", "admin", "settings", "resource-overrides", "health", str(path)]
            + ["--argocd-cm-path", str(config_map)],
            executable=program(),
            # Without a home, and in any zone.
            env={"HOME": folder, "TZ": zone},
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stderr
    if done.stdout.startswith("Health script is not configured"):
        return None
    status, _, message = done.stdout.partition("\n")
    return Health(
        status.removeprefix("STATUS: "), message.removeprefix("MESSAGE: ").strip()
    )


def assess_all(config_map: Path, resources: list[Resource]) -> list[Health | None]:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda resource: assess(config_map, resource), resources))
