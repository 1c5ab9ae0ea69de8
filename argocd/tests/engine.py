"""Argo CD's health of a resource, by its own program with our configuration."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

BUILD = "cargo xtask cluster binary argocd-health"

# The age of a condition's last transition, as the cases name it. The scripts report
# some states as Progressing for a time that is between these two.
AGES = {"now": timedelta(), "an hour ago": timedelta(hours=1)}

Resource = dict[str, Any]


@dataclass(frozen=True)
class Health:
    status: str
    message: str

    def __str__(self) -> str:
        return f"{self.status}: {self.message}" if self.message else self.status


def program() -> str:
    path = os.environ.get("ARGOCD_HEALTH")
    assert path, f"set ARGOCD_HEALTH to the program; it is built by: {BUILD}"
    assert Path(path).is_file(), f"{path} is missing; it is built by: {BUILD}"
    return str(Path(path).resolve())


def dated(resource: Resource) -> Resource:
    """The resource with times instead of the ages' names."""
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
    """The health of a resource in Argo CD, or None if Argo CD has no script for it."""
    [health] = assess_all(config_map, [resource], zone)
    return health


def assess_all(
    config_map: Path, resources: list[Resource], zone: str = "UTC"
) -> list[Health | None]:
    """The health of each resource. The program uses one processor only, so one program
    runs on each processor, with a part of the resources."""
    size = max(1, -(-len(resources) // (os.cpu_count() or 1)))
    parts = [resources[at : at + size] for at in range(0, len(resources), size)]
    with ThreadPoolExecutor() as pool:
        found = pool.map(lambda part: assess_part(config_map, part, zone), parts)
        return [health for part in found for health in part]


def assess_part(
    config_map: Path, resources: list[Resource], zone: str
) -> list[Health | None]:
    with TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.yaml" for number in range(len(resources))]
        for path, resource in zip(paths, resources, strict=True):
            path.write_text(yaml.dump(dated(resource), Dumper=yaml.CSafeDumper))
        done = subprocess.run(
            [program(), str(config_map), *map(str, paths)],
            # The result must not depend on the user's home or on the time zone.
            env={"HOME": folder, "TZ": zone},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        answers = done.stdout.split(f"--- {folder}/")[1:]
    names = [text.partition("\n")[0] for text in answers]
    assert names == [path.name for path in paths]
    return [health(text.partition("\n")[2]) for text in answers]


def command(
    config_map: Path, name: str, resource: Resource, *arguments: str, zone: str = "UTC"
) -> subprocess.CompletedProcess[str]:
    """Runs a command of `argocd admin settings resource-overrides` on a resource."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "resource.yaml"
        path.write_text(yaml.safe_dump(resource))
        return subprocess.run(
            [program(), str(config_map), "--", name, str(path), *arguments],
            # Argo CD shows what an action changes by the program `diff`.
            env={"HOME": folder, "TZ": zone, "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
        )


def health(said: str) -> Health | None:
    if said.startswith("Health script is not configured"):
        return None
    status, _, message = said.partition("\n")
    message = message.removeprefix("MESSAGE: ").strip()
    return Health(status.removeprefix("STATUS: "), message)
