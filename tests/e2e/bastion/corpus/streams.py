"""What a client writes into a session: to the command `api`, to a prompt, at a terminal."""

import json
from typing import Any

Line = dict[str, Any]
Class = dict[str, Any]

# Replaced by the namespace of the person who sends the line.
OWN = "NAMESPACE"
CONTROL = "it has a control character"
UNFINISHED = "a quote or a backslash has no end"
TOO_LONG = "it is longer than 64 KiB"
# What asyncssh tells of a session that a signal ended.
SIGNAL = -1


def reference(name: str, namespace: str = OWN, kind: str = "Claim") -> dict[str, str]:
    return {"kind": kind, "namespace": namespace, "name": name}


def answered(*outcomes: str, lines: list[Any]) -> Line:
    """Calls that are answered, and leave the session open: `forbidden` by the bastion,
    `refused` by the API server, or `ok`."""
    text = "".join(
        (line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines
    )
    return {"line": text, "answers": list(outcomes), "code": 0}


def forbidden(*calls: Any) -> list[Line]:
    return [answered("forbidden", lines=[call]) for call in calls]


def ended(*texts: str | bytes, **more: Any) -> list[Line]:
    """What is no call ends the session without an answer."""
    return [{"line": text, "answers": [], "code": 255, **more} for text in texts]


def of_calls(about: str, *lines: list[Line]) -> Class:
    return {
        "about": about,
        "door": "api",
        "lines": [one for some in lines for one in some],
    }


def json_injections() -> Class:
    get = json.dumps({"Get": reference("x")})
    return of_calls(
        "JSON that says one thing to one reader and another thing to another one",
        ended(get.replace('"name"', '"namespace": "kube-system", "name"') + "\n"),
        ended(
            get.replace('"Claim"', '"Secret"') + "\n", get.replace("Get", "get") + "\n"
        ),
        ended(
            get[:-1] + ', "Time": null}\n', '{"Get": null}\n', "null\n", "[]\n", '""\n'
        ),
        ended(get + get + "\n", get + " # id\n", get.replace("}", ",}") + "\n"),
        ended(
            '{"Get": {"$ref": "file:///etc/passwd"}}\n', "{'Get': 1}\n", "\n", "id\n"
        ),
        ended('{"List": ["Claim", "Cluster", "Cluster"]}\n', '{"May": ["get"]}\n'),
        ended('"\\ud800"\n', b"\xff\n", b'{"Get": {"kind": "Claim\x00"}}\n', "NaN\n"),
        ended('{"Changed": [{}, "", {"secs": -1, "nanos": 0}]}\n', "1e999\n"),
        [answered("refused", "ok", lines=[get, json.dumps("Time")])],
        [answered("refused", lines=[get.replace("Claim", "\\u0043laim")])],
        # What follows a call that was answered is a call as well.
        [{"line": get + "\nid\n", "answers": ["refused"], "code": 255}],
        forbidden(
            {"Get": reference("../../../../api/v1/namespaces/kube-system/secrets")},
            {"Get": reference("x?limit=1")},
            {"Get": reference("x\r\nImpersonate-User: system:admin")},
            {"Get": reference("x HTTP/1.1\r\nHost: x\r\n\r\n")},
            {"Get": reference("x", f"{OWN}/../kube-system")},
            {"Get": reference("x", f"{OWN}\r\nx")},
            {"Get": reference("kube-root-ca.crt", kind="ConfigMap")},
            {"Get": reference("\u202ex")},
            {"Get": reference("")},
            {"Delete": [reference("x/../../pods/y"), ""]},
            {"Patch": [reference("x/status"), {"status": {}}, "Stored"]},
            {"Changed": [reference("x"), "1&watch=0", {"secs": 1, "nanos": 0}]},
            {"Changed": [reference("x"), "1\r\nx: y", {"secs": 1, "nanos": 0}]},
            {"May": ["get", "Claim", "*"]},
            {"May": ["impersonate", "Claim", "kube-system"]},
            {"Create": [{"apiVersion": "v1", "kind": "Secret"}, "Stored"]},
            {"Create": [{"apiVersion": "v1", "kind": "List", "items": []}, "Stored"]},
            {"Create": [[], "Stored"]},
            {"Create": ["x", "Trial"]},
        ),
        # A verb is text in the body of a question, and nobody has a right of that name.
        [answered("ok", lines=[{"May": ["get\r\nImpersonate-User: x", "Claim", OWN]}])],
    )


def deep_json() -> Class:
    def nested(opening: str, closing: str, depth: int) -> str:
        return f'{{"Create": [{opening * depth}{closing * depth}, "Trial"]}}\n'

    return of_calls(
        "JSON so deep that a reader without a bound overflows its stack",
        ended(nested("[", "]", 200), nested('{"a":', "}", 200).replace("}", "1}", 1)),
        ended("[\n", "{\n"),
        ended("", then="[", times=100_000),
        ended("", then='{"a":', times=100_000),
        ended('{"Create": [', then="[", times=1_000_000),
    )


def large_frames() -> Class:
    return of_calls(
        "lines that are larger than any object",
        # The broker takes 4 MiB, and a login 64 MiB.
        [
            {
                "line": '{"Create": [{"a": "',
                "then": "x",
                "times": 5 << 20,
                "end": '"}, "Trial"]}\n',
                "answers": ["refused"],
                "code": 255,
            }
        ],
        ended("", then="x", times=5 << 20, end="\n"),
        ended("", then="x", times=65 << 20),
        ended('{"Get": {"name": "', then="\\u0041", times=1 << 20, end='"}}\n'),
    )


def second_questions() -> Class:
    """A session speaks for its person by `Login`, once. A client's lines are calls only."""
    login = {"Login": {"grant": "0" * 64, "source": "127.0.0.1"}}
    keys = {"Keys": {"user": "root", "kind": "ssh-ed25519", "blob": "AAAA"}}
    asks = [
        login,
        keys,
        {"Certificate": {"user": "root", "blob": "AAAA"}},
        "Listen",
        {"Listen": None},
        {"Command": {"words": ["list"]}},
        {"Refuse": {"reason": "x"}},
        {"Connect": {"host": "x"}},
        {"Closed": {"up": 1, "down": 1}},
        {"Api": "Time"},
        {"Api": {"Get": reference("x", "kube-system")}},
        {"Welcome": {"user": "root", "namespace": "kube-system", "session": "x"}},
    ]
    return of_calls(
        "questions to the broker that only programs of the bastion ask",
        ended(*(json.dumps(ask) + "\n" for ask in asks)),
    )


def prompts() -> Class:
    def words(*lines: str) -> list[Any]:
        return [{"words": line.split(" ")} for line in lines]

    def typed(text: str | bytes, *records: Any, **more: Any) -> Line:
        return {"line": text, "records": list(records), "code": 0, **more}

    control, unfinished = {"refused": CONTROL}, {"refused": UNFINISHED}
    return {
        "about": "lines at the prompt; each has a record",
        "door": "prompt",
        "lines": [
            typed("", *words()),
            typed("\n\n \n", *words()),
            typed("id\n", *words("id")),
            typed("!sh\n!id\n", *words("!sh", "!id")),
            typed("$(id)\n`id`\n", *words("$(id)", "`id`")),
            typed("list; id\nid", *words("list; id", "id")),
            typed("exit; id\n", *words("exit; id")),
            typed("exit\nid\n", *words()),
            typed("~.\n~C\n~?\n", *words("~.", "~C", "~?")),
            typed("\\q\n", *words("q")),
            typed(":!id\n", *words(":!id")),
            typed("\x1b[A\n\x1b[2J\nid\n", control, control, *words("id")),
            typed("list\rid\n", control),
            typed("id\r\n", *words("id")),
            typed("'list\nid'\n", unfinished, unfinished),
            typed("list \\\nid\n", unfinished, *words("id")),
            typed("list\0id\n", control),
            typed("\x03\x04\x1a\n", control),
            typed("show 'a;id'\n", {"words": ["show", "a;id"]}),
            typed("", {"refused": TOO_LONG}, then="x", times=100_000, end="\n"),
            typed(b"\xff\nid\n", {"refused": "it is no UTF-8"}, *words("id")),
        ],
    }


def keys() -> Class:
    """At a terminal, the kernel makes signals of some keys (termios(3))."""

    def pressed(text: str, *records: Any, code: int = 0) -> Line:
        return {"line": text, "records": list(records), "code": code}

    escape, id_ = {"refused": CONTROL}, {"words": ["id"]}
    return {
        "about": "keys at a terminal that end, stop or go back",
        "door": "terminal",
        "lines": [
            pressed("\x03", code=SIGNAL),
            pressed("\x04"),
            pressed("\x1c", code=SIGNAL),
            pressed("\x1aid\rexit\r", id_),
            pressed("id\r\x1b[A\rexit\r", id_, escape),
            pressed("\x16\x03\r\x04", escape),
        ],
    }


CLASSES = (
    json_injections,
    deep_json,
    large_frames,
    second_questions,
    prompts,
    keys,
)
