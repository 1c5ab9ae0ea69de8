"""Git, used as teams use it: clones, commits, pushes."""

import os
import subprocess
import time
from pathlib import Path

from environment.cluster import Cluster

NAMESPACE = "git"
# The address of the git server inside the cluster. The server reports every push to
# Argo CD's webhook.
INSIDE = "http://git.git.svc"


class Server:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        (pod,) = cluster.all("pods", NAMESPACE, "app=git")
        self._pod = pod["metadata"]["name"]
        self._outside = f"http://{pod['status']['podIP']}:8080"

    def repository(self, name: str, folder: Path) -> "Repository":
        """Makes an empty repository, and a clone of it."""
        path = f"/srv/git/{name}.git"
        self._in_pod("rm", "-rf", path)
        self._in_pod("git", "init", "--quiet", "--bare", path)
        git(folder, "init", "--quiet", "--initial-branch=main")
        git(folder, "remote", "add", "origin", f"{self._outside}/{name}.git")
        return Repository(folder)

    def _in_pod(self, *command: str) -> None:
        self._cluster.kubectl("exec", "-n", NAMESPACE, self._pod, "--", *command)


class Repository:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, path: str, text: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def remove(self, path: str) -> None:
        git(self.folder, "rm", "--quiet", "-r", path)

    def replace(self, path: str, old: str, new: str) -> None:
        text = (self.folder / path).read_text()
        assert old in text, f"{path} has no {old!r}"
        self.write(path, text.replace(old, new))

    def push(self, message: str) -> float:
        """Commits and pushes all changes. Returns the time after the push."""
        git(self.folder, "add", "--all")
        git(self.folder, "commit", "--quiet", "--message", message)
        return self._push()

    def revert(self) -> float:
        git(self.folder, "revert", "--no-edit", "HEAD")
        return self._push()

    def _push(self) -> float:
        said = git(self.folder, "push", "--quiet", "origin", "main")
        # The server's hook prints this if it cannot reach Argo CD.
        assert "not told" not in said, said
        return time.time()


def git(folder: Path, *arguments: str) -> str:
    own = ["-c", "user.name=Platform", "-c", "user.email=platform@acme.io"]
    ran = subprocess.run(
        ["git", "-C", str(folder), *own, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull},
    )
    assert ran.returncode == 0, f"git {' '.join(arguments)}: {ran.stderr}"
    return ran.stderr
