"""What is read from logs, pages and images."""

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path

from bench import app, calls, image, process
from bench.stage import claim

PORTAL = "system:serviceaccount:gpu-portal:gpu-portal"


def event(user: str, verb: str, resource: str, stage: str = "ResponseComplete") -> str:
    return json.dumps(
        {
            "stage": stage,
            "verb": verb,
            "user": {"username": user},
            "objectRef": {"resource": resource},
        }
    )


def test_a_watch_is_no_list_and_other_peoples_calls_are_not_the_portals() -> None:
    lines = [
        event(PORTAL, "list", "gpudevworkspaceclaims"),
        event(PORTAL, "watch", "gpudevworkspaceclaims", "ResponseStarted"),
        event(PORTAL, "watch", "gpudevworkspaceclaims"),
        event(PORTAL, "create", "subjectaccessreviews"),
        event("somebody", "list", "gpudevworkspaceclaims"),
        json.dumps({"stage": "Panic", "verb": "get", "user": {"username": PORTAL}}),
    ]
    found = calls.counted(lines)
    assert calls.of(found, PORTAL, "list") == 1
    assert calls.of(found, PORTAL) == 2
    assert calls.of(found, "somebody") == 1


def test_calls_before_the_log_was_opened_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_text(event(PORTAL, "list", "secrets") + "\n")
    log = calls.Log(path)
    with path.open("a") as more:
        more.write(event(PORTAL, "get", "secrets") + "\n")
    assert log.calls() == {(PORTAL, "get", "secrets"): 1}


def test_the_first_page_has_its_scripts_and_the_worker(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    sizes = {}
    for name in ("index-1.js", "shared-2.js", "worker-3.js", "later-4.js"):
        path = tmp_path / "assets" / name
        path.write_text(f"// {name}\n" * 50)
        sizes[name] = len(gzip.compress(path.read_bytes(), mtime=0))
    (tmp_path / "index.html").write_text(
        '<link rel="modulepreload" href="/assets/shared-2.js">'
        '<link rel="stylesheet" href="/assets/index-9.css">'
        '<script type="module" crossorigin src="/assets/index-1.js"></script>'
    )
    found = app.scripts(tmp_path)
    assert found.all_ == sum(sizes.values())
    assert found.first_page == found.all_ - sizes["later-4.js"]


def test_the_program_comes_out_of_the_image(tmp_path: Path) -> None:
    blobs = tmp_path / "blobs/sha256"
    blobs.mkdir(parents=True)

    def blob(content: bytes) -> dict[str, object]:
        digest = hashlib.sha256(content).hexdigest()
        (blobs / digest).write_bytes(content)
        return {"digest": f"sha256:{digest}", "size": len(content)}

    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w:gz") as files:
        entry = tarfile.TarInfo("gpu-portal")
        entry.size, entry.mode = 4, 0o755
        files.addfile(entry, io.BytesIO(b"\x7fELF"))
    layers = [blob(layer.getvalue())]
    config = blob(b"{}")
    manifest = blob(json.dumps({"config": config, "layers": layers}).encode())
    (tmp_path / "index.json").write_text(json.dumps({"manifests": [manifest]}))
    folder = tmp_path / "out"
    folder.mkdir()
    found = image.unpacked(folder, tmp_path)
    assert found.program.read_bytes() == b"\x7fELF"
    assert found.size == sum(path.stat().st_size for path in blobs.iterdir())


def test_the_processor_time_is_found_behind_any_name() -> None:
    stat = "42 (a (b) c) S 1 42 42 0 -1 4194560 100 0 0 0 310 25 0 0 20 0 3 0"
    assert process.used(stat) == 335


def test_the_claims_are_as_large_as_those_of_workspaces_that_run() -> None:
    made = claim()
    assert made["status"]["phase"] == "Ready"
    assert made["status"]["cost"]["hourlyUsd"] == 0.526
    # The release of OpenCV is a text, although it looks like a number.
    assert made["status"]["opencvVersion"] == "4.8.0"
    assert 2000 < len(json.dumps(made)) < 5000
