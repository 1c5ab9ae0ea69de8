"""The sessions of instances' roles, and their only permission.

An instance reports its state by its tags. The role of a workspace's instance should
permit only two tags of this instance. The emulator limits every such session to that,
whatever policies the role has.
"""

from dataclasses import dataclass
from typing import Any

from moto.sts.models import sts_backends

from ..calls import Call
from ..ec2.instance import EmulatedInstance
from ..errors import AwsError

SESSION_SECONDS = 6 * 3600
TAGS = frozenset(
    f"gpu.platform.acme.io:{name}" for name in ("activity", "host-key", "setup")
)


@dataclass(frozen=True)
class Session:
    instance: EmulatedInstance
    role: str
    token: str
    expires: float


class Sessions:
    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}

    def begin(self, instance: EmulatedInstance) -> dict[str, str]:
        """Begins a session. Returns its credentials in the form that SDKs read from the
        metadata service."""
        region, role = instance.region, instance.roles[0]
        made = sts_backends[region.account]["aws"].assume_role(
            region_name=region.name,
            role_session_name=instance.id,
            role_arn=f"arn:aws:iam::{region.account}:role/{role}",
            policy="",
            duration=SESSION_SECONDS,
            external_id="",
        )
        now = region.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        expires = region.clock.seconds() + SESSION_SECONDS
        session = Session(instance, role, made.session_token, expires)
        self._sessions[made.access_key_id] = session
        return {
            "Code": "Success",
            "LastUpdated": now,
            "Type": "AWS-HMAC",
            "AccessKeyId": made.access_key_id,
            "SecretAccessKey": made.secret_access_key,
            "Token": made.session_token,
            "Expiration": made.expiration.strftime("%Y-%m-%dT%H:%M:%SZ"),
        }

    def clear(self) -> None:
        self._sessions.clear()

    def check(self, call: Call, token: str) -> None:
        """Raises AWS's error if an instance makes a call that it has no permission for."""
        session = self._sessions.get(call.access_key)
        if session is None:
            return
        region = session.instance.region
        if token != session.token:
            raise AwsError(
                "AuthFailure",
                "AWS was not able to validate the provided access credentials",
            )
        if region.clock.reached(session.expires):
            raise AwsError("RequestExpired", "Request has expired.")
        if not _allowed(session, call):
            raise _denied(session, call)


def _allowed(session: Session, call: Call) -> bool:
    # GetCallerIdentity needs no permission.
    if (call.service, call.operation) == ("sts", "GetCallerIdentity"):
        return True
    if (call.service, call.operation) != ("ec2", "CreateTags"):
        return False
    if call.region != session.instance.region.name:
        return False
    given: list[dict[str, Any]] = call.parameters.get("Tags") or []
    keys = {str(tag.get("Key")) for tag in given}
    return call.parameters.get("Resources") == [session.instance.id] and keys <= TAGS


def _denied(session: Session, call: Call) -> AwsError:
    instance = session.instance
    who = f"{instance.region.account}:assumed-role/{session.role}/{instance.id}"
    named = call.parameters.get("Resources") or ["*"]
    what = f"{call.service}:{call.operation}"
    return AwsError(
        "UnauthorizedOperation" if call.service == "ec2" else "AccessDenied",
        f"You are not authorized to perform this operation. User: arn:aws:sts::{who} "
        f"is not authorized to perform: {what} on resource: {', '.join(named)} "
        f"because no identity-based policy allows the {what} action.",
        403,
    )
