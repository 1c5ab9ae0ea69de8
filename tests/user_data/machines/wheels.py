"""Package indexes in folders, which pip reads as it reads an index on the network.

OpenCV and NumPy are the real ones, downloaded once by this machine's pip with its
own configuration; PyTorch is a stub, because the real one has gigabytes.
"""

import io
import platform
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path

from machines import cache

TAGS = ["manylinux2014", "manylinux_2_17", "manylinux_2_27", "manylinux_2_28"]


def ensure(python: str, requirements: set[str]) -> Path:
    """An index with what each text of `requirements` resolves to for that Python."""
    # An image may have all that a workspace needs.
    texts = sorted(text for text in requirements if text)
    key = cache.key(Path(__file__).read_text(), python, platform.machine(), *texts)
    make = lambda folder: _download(folder, python, texts)
    return cache.entry("user-data-wheels", f"python{python}", key, make)


def torch(version: str) -> tuple[str, bytes]:
    return stub("torch", version)


def stub(project: str, version: str) -> tuple[str, bytes]:
    """A wheel, its name first, that does nothing but import and say its version."""
    name = f"{project}-{version}"
    files = {
        f"{project}/__init__.py": f"__version__ = {version!r}\n",
        f"{name}.dist-info/METADATA": (
            f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n"
        ),
        f"{name}.dist-info/WHEEL": (
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        ),
    }
    record = f"{name}.dist-info/RECORD"
    files[record] = "".join(f"{path},,\n" for path in [*files, record])
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return f"{name}-py3-none-any.whl", content.getvalue()


def pages(wheels: Iterable[str]) -> dict[str, str]:
    """The pages of an index beside its wheels: PEP 503, one page per project."""
    found: dict[str, str] = {}
    for wheel in sorted(wheels):
        project = re.sub(r"[-_.]+", "-", wheel.split("-")[0]).lower()
        link = f'<a href="../{wheel}">{wheel}</a>\n'
        page = f"{project}/index.html"
        found[page] = found.get(page, "") + link
    return found


def _download(folder: Path, python: str, requirements: list[str]) -> None:
    log = cache.log("user-data-wheels")
    wanted = folder / "requirements.txt"
    for text in requirements:
        # This machine has an index of its own.
        lines = text.splitlines(keepends=True)
        wanted.write_text("".join(l for l in lines if not l.startswith("--index-url")))
        command = [sys.executable, "-m", "pip", "download", "--no-input"]
        command += ["--only-binary=:all:", f"--python-version={python}"]
        command += [f"--platform={tag}_{platform.machine()}" for tag in TAGS]
        command += ["--dest", str(folder), "--requirement", str(wanted)]
        with log.open("wb") as output:
            done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT)
        if done.returncode:
            end = "\n".join(log.read_text().splitlines()[-15:])
            raise RuntimeError(f"pip download failed, see {log}:\n{end}")
    wanted.unlink()
    for path, page in pages(wheel.name for wheel in folder.glob("*.whl")).items():
        (folder / path).parent.mkdir()
        (folder / path).write_text(page)
