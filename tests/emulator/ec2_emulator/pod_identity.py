"""EKS's Pod Identity agent. A pod sends its token, and gets a session of a role.

"Learn how EKS Pod Identity grants pods access to AWS services", EKS user guide: the
agent listens at 169.254.170.23, port 80, and asks `AssumeRoleForPodIdentity` of EKS.
"""

import json

from moto.core import DEFAULT_ACCOUNT_ID
from moto.sts.models import sts_backends

from .calls import DEFAULT_REGION, Call
from .errors import AwsError
from .reply import Reply

PATH = "/v1/credentials"
# The only associated role. All service accounts have it.
ROLE = f"arn:aws:iam::{DEFAULT_ACCOUNT_ID}:role/pod-identity"
SESSION_SECONDS = 6 * 3600


def agent_call() -> Call:
    """The agent's call to EKS for the pod."""
    operation = "AssumeRoleForPodIdentity"
    return Call("eks-auth", operation, DEFAULT_REGION, "agent", "")


def answer(token: str) -> Reply:
    """The session's credentials, in the form that SDKs read."""
    if not token:
        raise AwsError("InvalidTokenException", "Service account token is empty")
    session = sts_backends[DEFAULT_ACCOUNT_ID]["aws"].assume_role(
        region_name=DEFAULT_REGION,
        role_session_name="eks-pod",
        role_arn=ROLE,
        policy="",
        duration=SESSION_SECONDS,
        external_id="",
    )
    document = {
        "AccessKeyId": session.access_key_id,
        "SecretAccessKey": session.secret_access_key,
        "Token": session.session_token,
        "AccountId": DEFAULT_ACCOUNT_ID,
        "Expiration": session.expiration.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    content = json.dumps(document).encode()
    return Reply(200, {"Content-Type": "application/json"}, content)


def refusal(error: AwsError) -> Reply:
    """The agent's answer after an error: EKS's status, and the reason as text."""
    text = f"[{error.code}]: {error.message}".encode()
    return Reply(error.status, {"Content-Type": "text/plain"}, text)
