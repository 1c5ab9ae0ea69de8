"""Writes the corpus: what hostile people send to the bastion, and what must become of it.

    cd tests/e2e && cargo xtask python -m bastion.corpus.generate

One file for each class. `words` and `refused` are what the audit log must have, `code` is the
exit code. The words are known by how a line is made, and not by a program that splits it.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from bastion.corpus import commands, doors, streams, words

HERE = Path(__file__).parent
CLASSES: dict[str, Callable[[], dict[str, Any]]] = {
    made.__name__.replace("_", "-"): made
    for module in (commands, words, doors, streams)
    for made in module.CLASSES
}


class _Dumper(yaml.SafeDumper):
    """Texts are in double quotes, so that a reader sees every character."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, data: str) -> yaml.Node:
    style = None if re.fullmatch(r"[a-z]+", data) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", data, style=style)


def _words(dumper: yaml.SafeDumper, data: list[Any]) -> yaml.Node:
    flow = all(isinstance(one, str) for one in data)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=flow)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(list, _words)


def files() -> dict[str, str]:
    """The files of the corpus with their content."""
    options: dict[str, Any] = {"sort_keys": False, "default_flow_style": False}
    return {
        f"{name}.yaml": "# Written by generate.py.\n"
        + yaml.dump(made(), Dumper=_Dumper, width=100, **options)
        for name, made in CLASSES.items()
    }


def main() -> None:
    for old in HERE.glob("*.yaml"):
        old.unlink()
    for name, text in files().items():
        (HERE / name).write_text(text)


if __name__ == "__main__":
    main()
