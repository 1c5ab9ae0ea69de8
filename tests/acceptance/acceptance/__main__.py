"""Asks the questions, writes the answers, and leaves nothing in the account."""

import argparse
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3

from .account import Account
from .questions import BY_HAND, QUESTIONS, Options


def main() -> int:
    arguments = _arguments()
    account = Account(boto3.Session(), arguments.region, arguments.endpoint_url)
    print(f"deleting what an earlier run left at {account.endpoint}", file=sys.stderr)
    account.clean()
    if arguments.clean:
        return _report_left(account)
    if not arguments.yes and not _agrees(account):
        return 1
    options = Options(arguments.type, arguments.tags_minutes)
    try:
        account.prepare()
        answers = {one.key: _ask(account, options, one) for one in QUESTIONS}
    finally:
        account.clean()
    document = {
        "endpoint": account.endpoint,
        "region": arguments.region,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "answers": answers,
        "forAPerson": BY_HAND,
    }
    arguments.answers.write_text(json.dumps(document, indent=2) + "\n")
    print(f"wrote {arguments.answers}", file=sys.stderr)
    return _report_left(account)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="acceptance", description=__doc__)
    parser.add_argument("--region", required=True)
    parser.add_argument("--endpoint-url", help="not AWS's own, for tests")
    parser.add_argument("--answers", type=Path, default=Path("answers.json"))
    parser.add_argument("--type", default="t3.nano", help="the instance type to launch")
    parser.add_argument("--tags-minutes", type=float, default=60.0)
    parser.add_argument("--clean", action="store_true", help="only delete what is left")
    parser.add_argument(
        "--yes", action="store_true", help="do not ask before launching"
    )
    return parser.parse_args()


def _agrees(account: Account) -> bool:
    question = f"launch a few spot instances at {account.endpoint}? [y/N] "
    return input(question).strip().lower() == "y"


def _ask(account: Account, options: Options, question: Any) -> dict[str, Any]:
    print(question.text, file=sys.stderr)
    try:
        answer = question.ask(account, options)
    except (TimeoutError, KeyError, ValueError) as error:
        answer = {"unanswered": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), file=sys.stderr)
    return {"question": question.text, "answer": answer}


def _report_left(account: Account) -> int:
    left = account.left()
    if left:
        print(
            f"still there: {', '.join(left)}; run with --clean again", file=sys.stderr
        )
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
