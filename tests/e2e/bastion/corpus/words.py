"""Command lines whose words are strange: options, paths, hosts, quotes, and what is no text."""

from typing import Any

from bastion.corpus.commands import (
    DONE,
    NOT_FOUND,
    REFUSED,
    USAGE,
    Class,
    Line,
    bad,
    of_commands,
    plain,
    quoted,
)

UNFINISHED = "a quote or a backslash has no end"
TOO_LONG = "it is longer than 64 KiB"
NO_TEXT = "it is no UTF-8"


def options() -> Class:
    return of_commands(
        "words that a program would take for options",
        plain(
            "-oProxyCommand=id", "show -oProxyCommand=id", "connect -oProxyCommand=id"
        ),
        plain("connect --", "connect -", "connect --help", "show -- -oProxyCommand=id"),
        plain("ssh -oProxyCommand=id x", "ssh x -oProxyCommand=id", "proxy -x.ws"),
        plain(
            "--bastion -oProxyCommand=id list", "--bastion=-J list", "--config x list"
        ),
        plain("--kubeconfig /etc/passwd list", "list --kubeconfig=/proc/self/environ"),
        plain("--context x list", "--identity /etc/passwd list", "list -n kube-system"),
        plain(
            "create x -f /etc/passwd",
            "create -f -",
            "create -f/proc/self/environ",
            code=REFUSED,
        ),
        plain(
            "create x --key /etc/passwd",
            "create x t4 --git",
            "delete x --git",
            code=REFUSED,
        ),
        plain(
            "run x --sync / id",
            "code x --program id",
            "config-ssh --write",
            code=REFUSED,
        ),
        plain(
            "proxy x.ws --known-hosts /tmp/x",
            "manual /tmp",
            "completion bash",
            code=REFUSED,
        ),
        plain("run x -- sh -c id", code=NOT_FOUND),
    )


def paths() -> Class:
    return of_commands(
        "names that lead to another object, or to a file",
        plain(
            "show ../x",
            "show ../../etc/passwd",
            "show /etc/passwd",
            "show ..",
            "show .",
        ),
        plain(
            "connect ../x", "connect x/../y", "connect file:///etc/passwd", "why ../x"
        ),
        plain("show %2e%2e%2fx", "show ..%2fx", "show x%00", "show x?y=z", "show x#y"),
        plain(
            "create ../x cpu-small", "delete ../x --yes", "cost ../x", "stop x/status"
        ),
        plain(
            "create x ../../secrets/y --no-wait", "create x .. --no-wait", code=REFUSED
        ),
        plain(
            "create x cpu-small?x --no-wait", "create x a%2fb --no-wait", code=REFUSED
        ),
        quoted(r"show \\\\x\\y", "show", r"\\x\y"),
    )


def hosts() -> Class:
    return of_commands(
        "places that are no workspaces",
        plain("connect", "connect x y", "connect 127.0.0.1", "connect 127.0.0.1:8080"),
        plain(
            "connect [::1]",
            "connect ::1",
            "connect 169.254.169.254",
            "connect 10.96.0.1:443",
        ),
        plain(
            "connect kubernetes.default.svc.cluster.local",
            "connect x@y",
            "connect 0.0.0.0",
        ),
        plain("connect root@127.0.0.1", "connect unix:/run/gpu-bastion/broker.sock"),
        plain(
            "connect -1.x.ws",
            "connect .ws",
            "connect X.ws",
            "connect x..ws",
            "connect x.ws.",
        ),
        plain(
            "connect kubernetes.default",
            "connect 65536.x.ws",
            "connect a.kube-system.ws",
            code=REFUSED,
        ),
        plain(
            "connect localhost",
            "connect 2130706433",
            "connect 0x7f000001",
            code=NOT_FOUND,
        ),
        plain("connect 0.localhost.ws", "connect broker", code=NOT_FOUND),
        quoted("connect ''", "connect", ""),
        quoted("connect 'x y'", "connect", "x y"),
    )


def unfinished() -> Class:
    return of_commands(
        "quotes and backslashes without an end",
        bad(
            UNFINISHED,
            "'",
            '"',
            "\\",
            "list '",
            'list "',
            "list \\",
            "show 'a",
            'show "a',
        ),
        bad(UNFINISHED, 'show "a\\', "show 'a\"", "show \"a'", "show 'a' 'b", "'\\''"),
        bad(UNFINISHED, '"\\"', "show 'a;id", 'show "$(id)'),
    )


def quotes() -> Class:
    return of_commands(
        "quotes that end: what is in them is one word, and a command stays a command",
        quoted("'list'", "list", code=DONE),
        quoted('"li"st', "list", code=DONE),
        quoted(r"l\ist", "list", code=DONE),
        quoted("devctl 'list'", "devctl", "list", code=DONE),
        quoted("  list\t", "list", code=DONE),
        quoted("devctl devctl list", "devctl", "devctl", "list"),
        quoted("'' list", "", "list"),
        quoted("list ''", "list", ""),
        quoted("'list id'", "list id"),
        quoted("list\\ id", "list id"),
        quoted("show 'a b; id'", "show", "a b; id"),
        quoted(r'show "a\"b"', "show", 'a"b'),
        quoted("show a'b'\"c\"d' e'", "show", "abcd e"),
        quoted(r"show '\'", "show", "\\"),
    )


def formats() -> Class:
    return of_commands(
        "patterns of printf and of others that put values into text",
        plain(
            "show %s%s%s%n",
            "show %x%x",
            "show %1$s",
            "%d",
            "list -o %s",
            "connect %r@%h",
        ),
        plain("show {}", "show {0}", "show {:?}", "show ${jndi:ldap://127.0.0.1/x}"),
        plain("connect %n", "connect {{7*7}}", "show <%=7*7%>"),
        plain("create x %s%n --no-wait", "create x {0} --no-wait", code=REFUSED),
    )


def injections() -> Class:
    """The record of the line is JSON, and so is the message to the broker."""
    return of_commands(
        "words that end a text of JSON, or look like a message to the broker",
        quoted('show "\\"}"', "show", '"}'),
        quoted("show '\"]}'", "show", '"]}'),
        quoted("'\"}}' '{\"Login\":{}}'", '"}}', '{"Login":{}}'),
        quoted('\'{"Command":{"words":[]}}\'', '{"Command":{"words":[]}}'),
        quoted(r"'\u0000' '\ud800'", r"\u0000", r"\ud800"),
        quoted(r"show '\'", "show", "\\"),
    )


def long_lines() -> Class:
    def long(head: str, text: str, times: int, **expected: Any) -> Line:
        return {"line": head, "then": text, "times": times, **expected}

    # 64 KiB is the longest line.
    exact = long("", "x", 65536, words=[""], grows="last", code=USAGE)
    short = long("show ", "a", 64, words=["show", ""], grows="last", code=USAGE)
    return of_commands(
        "very long words",
        exact,
        short,
        long("show ", "a", 60000, words=["show", ""], grows="last", code=USAGE),
        long("", "x", 65537, refused=TOO_LONG, code=USAGE),
        long("show '", "x", 100000, refused=TOO_LONG, code=USAGE),
        long("show ", "\u00e9", 40000, refused=TOO_LONG, code=USAGE),
        # The kernel starts no program with a variable of 128 KiB (execve(2)).
        long("", "x", 140000, unreached=True),
        # OpenSSH closes a connection with a packet of more than 256 KiB.
        long("", "x", 300000, unreached=True, closes=True),
        long("", "x", 1 << 20, unreached=True, closes=True),
    )


def many_words() -> Class:
    def many(head: str, text: str, times: int, word: str) -> Line:
        words = head.split(" ")
        made = {"words": words, "grows": "list", "word": word, "code": USAGE}
        return {"line": head, "then": text, "times": times, **made}

    return of_commands(
        "very many words",
        many("list", " x", 1000, "x"),
        many("list", " a", 30000, "a"),
        many("list", " ''", 20000, ""),
        many("list", " -v", 2000, "-v"),
        many("--", " --", 20000, "--"),
    )


def not_text() -> Class:
    return of_commands(
        "bytes that are no UTF-8",
        bad(
            NO_TEXT,
            b"\xff",
            b"list \xff",
            b"list\xfe",
            b"show \xc3\x28",
            b"\xed\xa0\x80",
        ),
        bad(
            NO_TEXT,
            b"show \xc0\xaf",
            b"show \xc1\x9b2J",
            b"\xf8\x88\x80\x80\x80",
            b"list \x9b2J",
        ),
        bad(NO_TEXT, b"list; id \x80", b"show \xf4\x90\x80\x80"),
    )


def nul() -> Class:
    """OpenSSH closes the connection, unless the byte is the last one: then it drops it."""
    lines: list[Line] = [
        {"line": line, "unreached": True, "closes": True}
        for line in ("list\0id", "show a\0b", "\0list", "list\0\0")
    ]
    return of_commands(
        "the byte that ends a text of C",
        lines,
        quoted("list\0", "list", code=DONE),
        quoted("\0"),
        quoted("show a;id\0", "show", "a;id"),
    )


CLASSES = (
    options,
    paths,
    hosts,
    unfinished,
    quotes,
    formats,
    injections,
    long_lines,
    many_words,
    not_text,
    nul,
)
