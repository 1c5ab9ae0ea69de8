"""The WSGI application: control API, then recorder, throttle, faults, then moto."""

import io
import logging
import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from botocore.model import OperationNotFoundError
from moto.iam.models import get_account_id_from
from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    create_backend_app,
)

from . import pod_identity
from .calls import Call, read_call
from .control import PREFIX, Control
from .emulator import Emulator
from .errors import AwsError, error_body
from .faults import Fault
from .reply import Reply, reason_phrase
from .recorder import Answered, UnderWay

log = logging.getLogger("ec2_emulator")

# The emulator neither loads nor checks moto's other services.
SERVICES = ("ec2", "sts", "iam", "ssm", "sqs", "events")
# Services without the emulator's lock, because long polls of a queue must not block
# other calls.
UNGUARDED = ("sqs", "sts")

StartResponse = Callable[..., Any]
# The key under which the server stores a function that cuts the client's connection.
CUT = "ec2_emulator.cut"


class LostReply(Exception):
    """A fault loses the reply of a call, which may have taken effect."""


@dataclass(frozen=True)
class App:
    emulator: Emulator
    control: Control
    moto: Any

    def __call__(
        self, environ: dict[str, Any], start_response: StartResponse
    ) -> Iterable[bytes]:
        body = _read_body(environ)
        path = environ.get("PATH_INFO", "/")
        if path == PREFIX or path.startswith(PREFIX + "/"):
            reply = self.control.answer(
                environ["REQUEST_METHOD"], path, environ.get("QUERY_STRING", ""), body
            )
            return _send(reply, start_response)
        of_agent = path == pod_identity.PATH
        call = pod_identity.agent_call() if of_agent else read_call(environ, body)
        account = get_account_id_from(call.access_key) if call.access_key else None
        seconds = self.emulator.clock.seconds()
        began, cpu_began = time.perf_counter(), time.thread_time()
        code = "OK"
        try:
            with self.emulator.recorder.under_way(seconds, call) as under_way:
                reply = self._answer(call, environ, body, under_way)
            code = reply.code
        except LostReply:
            reply, code = Reply(500, {}, b""), "(reply lost)"
            environ.get(CUT, lambda: None)()
        except AwsError as error:
            reply = pod_identity.refusal(error) if of_agent else _refusal(error, call)
            code = error.code
        spent = (time.perf_counter() - began) * 1000
        cpu = (time.thread_time() - cpu_began) * 1000
        self.emulator.recorder.add(
            Answered(seconds, call, account, reply.status, code, spent, cpu)
        )
        again = f", attempt {call.attempt}" if call.attempt > 1 else ""
        log.info("%s %s %s %.0f ms%s", call.service, call.operation, code, spent, again)
        return _send(reply, start_response)

    def _answer(
        self, call: Call, environ: dict[str, Any], body: bytes, under_way: UnderWay
    ) -> Reply:
        emulator = self.emulator
        if call.protocol == "agent":
            _strike_before(emulator.faults.take_at_front(call))
            with emulator.held():
                return pod_identity.answer(environ.get("HTTP_AUTHORIZATION", ""))
        if call.service not in SERVICES:
            raise AwsError(
                "NotImplementedByEmulator",
                f"The service '{call.service}' is not emulated; there are "
                f"{', '.join(SERVICES)}",
                501,
            )
        if not call.operation:
            raise AwsError("MissingAction", "The request names no action")
        account = get_account_id_from(call.access_key)
        if emulator.machines is not None:
            token = environ.get("HTTP_X_AMZ_SECURITY_TOKEN", "")
            emulator.machines.sessions.check(call, token)
        if call.service == "ec2" and emulator.settings.throttle:
            emulator.throttle.admit(call, account, emulator.clock.seconds())
        faults = emulator.faults.take_at_front(call)
        _strike_before(faults)
        guard = nullcontext() if call.service in UNGUARDED else emulator.held()
        with guard:
            if call.service in ("ec2", "ssm"):
                # This creates the region, with its images and their SSM parameters.
                region = emulator.region(account, call.region)
                if call.service == "ec2":
                    emulator.policies.check(call, region)
            reply = self._ask_moto(call, environ, body)
        under_way.carried_out = True
        for fault in faults:
            if fault.effect == "delay-reply":
                time.sleep(fault.seconds)
        if any(fault.effect == "lose-reply" for fault in faults):
            raise LostReply
        return reply

    def _ask_moto(self, call: Call, environ: dict[str, Any], body: bytes) -> Reply:
        captured: list[Any] = []

        def capture(status: str, headers: list[tuple[str, str]], _: Any = None) -> None:
            captured[:] = [int(status.split(" ", 1)[0]), headers]

        inner = {**environ, "wsgi.input": io.BytesIO(body)}
        if not call.access_key:
            # Such a client uses a proxy that signs its calls.
            inner["HTTP_AUTHORIZATION"] = (
                "AWS4-HMAC-SHA256 Credential="
                f"UNSIGNED/20260101/{call.region}/{call.service}/aws4_request"
            )
        try:
            content = b"".join(self.moto(inner, capture))
        except AwsError:
            raise
        except OperationNotFoundError as error:
            message = f"The action {call.operation} is not valid for this web service."
            raise AwsError("InvalidAction", message) from error
        except NotImplementedError as error:
            raise AwsError("NotImplementedByEmulator", str(error), 501) from error
        except Exception as error:
            # The status is not 500, because clients retry after 500.
            log.exception("%s failed inside the emulator", call.operation)
            message = f"{type(error).__name__}: {error}"
            raise AwsError("EmulatorFailure", message, 501) from error
        status, headers = captured
        # moto and the endpoint write a placeholder for the request id.
        request_id = str(uuid.uuid4()).encode()
        content = content.replace(b">request-id<", b">" + request_id + b"<", 1)
        if status >= 500 and content.lstrip().startswith(b"<!"):
            raise AwsError("NotImplementedByEmulator", f"{call.operation} failed", 501)
        return Reply(status, dict(headers), content)


def build_app(emulator: Emulator) -> App:
    emulator.app = App(
        emulator=emulator,
        control=Control(emulator),
        moto=DomainDispatcherApplication(create_backend_app),
    )
    app: App = emulator.app
    return app


def _read_body(environ: dict[str, Any]) -> bytes:
    length = environ.get("CONTENT_LENGTH")
    stream = environ["wsgi.input"]
    if length:
        body: bytes = stream.read(int(length))
    elif environ.get("HTTP_TRANSFER_ENCODING", "").lower() == "chunked":
        body = stream.read()
        environ["CONTENT_LENGTH"] = str(len(body))
    else:
        body = b""
    return body


def _strike_before(faults: list[Fault]) -> None:
    for fault in faults:
        if fault.effect == "delay":
            time.sleep(fault.seconds)
    for fault in faults:
        if fault.effect == "refuse":
            raise fault.error()


def _refusal(error: AwsError, call: Call) -> Reply:
    body = error_body(error, call.protocol, str(uuid.uuid4()))
    return Reply(error.status, {"Content-Type": body.content_type}, body.content)


def _send(reply: Reply, start_response: StartResponse) -> Iterable[bytes]:
    headers = {
        name: value
        for name, value in reply.headers.items()
        if name.lower() != "content-length"
    }
    headers["Content-Length"] = str(len(reply.content))
    start_response(reason_phrase(reply.status), list(headers.items()))
    return [reply.content]
