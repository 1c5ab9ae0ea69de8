"""How long a person waits until the form says what a workspace would get."""

import json
from typing import Any

from cluster import KEY
from people import Browser

from bench import load
from bench.load import Answer
from bench.stage import TEAM, Stage

PATH = "/api/v1/preview"
# A form asks after a pause in typing, in milliseconds.
PAUSE = 100
WISH: dict[str, Any] = {
    "name": "vision",
    "parameters": {
        "instanceType": "g4dn.xlarge",
        "ssh": {"allowedCidrs": ["203.0.113.0/24"], "publicKeys": [KEY]},
    },
}


def measure(stage: Stage, seconds: int) -> Answer:
    """Previews, one after the other."""
    browser = Browser(stage.places.portal, stage.authority)
    browser.sign_in(f"{TEAM}@acme.io")
    answer = browser.writes("POST", PATH, WISH)
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert told["errors"] == [] and told["machines"], told
    body = stage.folder / "preview.json"
    body.write_text(json.dumps(WISH))
    return load.ran(
        *("ask", f"{stage.places.portal}{PATH}", "--body", body),
        *("--authority", stage.authority, "--sessions", stage.readers),
        *("--connections", "1", "--pause", str(PAUSE), "--seconds", str(seconds)),
    )
