"""Command lines. What a shell would run, a terminal would obey or a program would take for
an option is a word like any other, or no word at all."""

from collections.abc import Callable
from typing import Any

Line = dict[str, Any]
Class = dict[str, Any]

CONTROL = "it has a control character"
# The exit codes of devctl (docs/devctl.md).
DONE, USAGE, NOT_FOUND, REFUSED = 0, 2, 3, 4


def plain(*lines: str, code: int = USAGE) -> list[Line]:
    """Lines without quotes, whose words are between their blanks."""
    return [{"line": line, "words": line.split(" "), "code": code} for line in lines]


def quoted(line: str, *words: str, code: int = USAGE) -> Line:
    return {"line": line, "words": list(words), "code": code}


def bad(reason: str, *lines: str | bytes) -> list[Line]:
    """Lines that have no words."""
    return [{"line": line, "refused": reason, "code": USAGE} for line in lines]


def of_commands(about: str, *lines: Line | list[Line]) -> Class:
    flat = [
        one for some in lines for one in (some if isinstance(some, list) else [some])
    ]
    return {"about": about, "door": "command", "lines": flat}


def separators() -> Class:
    return of_commands(
        "characters that end a command of a shell and begin another one",
        plain("list; id", "list;id", "; id", ";;", "list;", "list && id", "list || id"),
        plain("list | cat /etc/passwd", "list |& id", "list & id", "list &", "(id)"),
        plain("{ id; }", "! id", "if id; then id; fi", "while id; do id; done"),
        plain("x() { id; }; x", "list -o json; cat /etc/passwd", "list #; id"),
    )


def substitutions() -> Class:
    return of_commands(
        "output of a command in the place of a word",
        plain("$(id)", "`id`", "list $(id)", "list `id`", "show $(id)", "show x$(id)"),
        plain("show <(id)", "show >(id)", "list ${x:-$(id)}", "list $[$(id)]"),
        quoted('show "$(id)"', "show", "$(id)"),
        quoted('show "`id`"', "show", "`id`"),
        quoted(r'show "\$(id)"', "show", "$(id)"),
        plain("connect $(id)", "connect `id`.ws"),
        plain("create x $(id) --no-wait", "create x `id` --no-wait", code=REFUSED),
    )


def expansions() -> Class:
    return of_commands(
        "variables, arithmetic, braces, homes and histories of a shell",
        plain("$((191*7))", "show $((191*7))", "show $[191*7]", "show $PATH"),
        plain("show ${PATH}", "show $HOME", "show ~", "show ~root", "show {id,ls}"),
        plain("show !!", "show !$", "show ^id^ls", "show${IFS}x", "show $$"),
        plain("show $SSH_ORIGINAL_COMMAND", "show $SSH_CONNECTION", "show $0"),
        quoted(r"show $'\x69\x64'", "show", r"$\x69\x64"),
        quoted('show "$PATH"', "show", "$PATH"),
        plain("create x $PATH --no-wait", code=REFUSED),
    )


def globs() -> Class:
    return of_commands(
        "patterns for the names of files",
        plain("list *", "list /*", "show *", "show ?", "show [a-z]*", "show **"),
        plain("show /etc/pass??", "connect *", "list -o *", "delete * --yes"),
    )


def redirections() -> Class:
    return of_commands(
        "files in the place of standard streams",
        plain(
            "list > /tmp/x", "list >> /etc/passwd", "list < /etc/passwd", "list 2>&1"
        ),
        plain("list >& x", "list <> x", "list >| x", "> /etc/passwd", "< /etc/passwd"),
        plain("show < /proc/self/environ", "list >/dev/tcp/127.0.0.1/22"),
    )


def here_documents() -> Class:
    return of_commands(
        "input of a command in the line itself",
        plain("cat << EOF", "list << x", "list <<< id", "sh <<- EOF"),
        quoted("sh << 'EOF'", "sh", "<<", "EOF"),
        bad(CONTROL, "sh << EOF\nid\nEOF\n", "list << x\r\nid\r\nx\r\n"),
    )


def programs() -> Class:
    return of_commands(
        "programs, and the shells that would run them",
        plain("sh", "bash -i", "busybox id", "env", "id", "cat /etc/passwd", "exec id"),
        plain("eval id", "source /etc/passwd", ". /etc/passwd", "command id", "su -"),
        plain("sudo id", "python3 -c id", "-c id", "-- id", "/proc/self/exe broker"),
        plain(
            "gpu-bastion broker", "gpu-bastion session --grant 0", "devctl gpu-bastion"
        ),
        plain(
            "/usr/bin/gpu-bastion verify /etc/passwd", "gpu-bastion keys root x AAAA"
        ),
        plain("/usr/sbin/sshd -D", "/usr/bin/ssh -V", "ssh-keygen -l -f /etc/passwd"),
        quoted("/bin/sh -c 'id'", "/bin/sh", "-c", "id"),
    )


def transfers() -> Class:
    return of_commands(
        "what programs that copy files start on a server",
        plain("scp -t /", "scp -f /etc/passwd", "scp -r -p -d -t -- /tmp"),
        plain("rsync --server -logDtpre.iLsfxCIvu . /", "internal-sftp", "sftp-server"),
        plain("/usr/lib/openssh/sftp-server", "mosh-server new"),
        quoted("git-upload-pack '/x.git'", "git-upload-pack", "/x.git"),
        quoted("git-receive-pack 'x; id'", "git-receive-pack", "x; id"),
        plain("cp /etc/passwd x:y", "cp x:y /etc/passwd", code=REFUSED),
    )


def line_ends() -> Class:
    breaks = ["\n", "\r", "\r\n", "\x0b", "\x0c", "\x85"]
    return of_commands(
        "ends of lines, after which a reader may see another command or record",
        *(bad(CONTROL, f"list{end}id") for end in breaks),
        bad(CONTROL, "\nid", "list\n", "list\n\n", "show 'a\nb'"),
        bad(CONTROL, 'list\n{"v":1,"seq":1,"event":"session.closed"}'),
        plain("list\u2028id", "list\u2029id"),
    )


def terminal_sequences() -> Class:
    return of_commands(
        "what a terminal that shows the log or the answer would obey",
        bad(
            CONTROL, "list \x1b[2J", "list \x1b[31mid", "\x1b]0;title\x07", "list \x07"
        ),
        bad(
            CONTROL, "\x1b]52;c;aWQ=\x07", "\x1bP$q\x1b\\", "list \x1b]8;;http://x\x07x"
        ),
        bad(CONTROL, "list\x08\x08\x08\x08id", "list \x7f", "list \x01"),
        bad(
            CONTROL, "list \x9b2J", "\x9d0;x\x9c", "list \x90", "list \x84", "show \x8d"
        ),
        quoted(r"show \e[2J", "show", "e[2J"),
        quoted(r"show '\x1b[2J'", "show", r"\x1b[2J"),
    )


def look_alikes() -> Class:
    return of_commands(
        "characters that look like others, or like nothing",
        # Cyrillic and Greek letters, full-width letters, a Roman numeral.
        plain("l\u0456st", "\uff4c\uff49\uff53\uff54", "\u217cist", "sh\u03bfw x"),
        # Invisible ones: joiners, a soft hyphen, a mark of byte order, a selector.
        plain("li\u200bst", "list\u200d", "li\u00adst", "\ufefflist", "list\ufe0f"),
        # Blanks that are none.
        plain("list\u00a0id", "list\u3000id", "list\u2003id", "list\u180eid"),
        plain("show \u0430lice", "show a\u0301", "show \u2215etc\u2215passwd"),
        plain("show \uff0e\uff0e\uff0fx", "connect \u2488work"),
        # Hyphens and quotes of other kinds.
        plain("list \u2014help", "show \u2018id\u2019", "list \uff1b id"),
    )


def directions() -> Class:
    marks = ["\u202e", "\u202d", "\u2066", "\u2067", "\u200f", "\u061c"]
    return of_commands(
        "marks that turn the direction of text, so that a reader sees another line",
        *(plain(f"show a{mark}b") for mark in marks),
        plain("\u202etsil", "list \u2066; id\u2069"),
    )


CLASSES = (
    separators,
    substitutions,
    expansions,
    globs,
    redirections,
    here_documents,
    programs,
    transfers,
    line_ends,
    terminal_sequences,
    look_alikes,
    directions,
)
