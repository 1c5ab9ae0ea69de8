"""Reads a request: its service, operation, region and parameters."""

import json
import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import parse_qsl

from botocore.model import OperationNotFoundError, ServiceModel
from moto.core.parse import PROTOCOL_PARSERS
from moto.core.utils import get_service_model

DEFAULT_REGION = "us-east-1"

# The operations of STS that a request without a signature may name.
_STS = ("AssumeRoleWith", "GetCallerIdentity")

# Parameters that contain a credential, by operation. Their values are never stored.
SECRET_PARAMETERS = {
    "AssumeRoleWithWebIdentity": {"WebIdentityToken"},
    "AssumeRoleWithSAML": {"SAMLAssertion"},
    "PutParameter": {"Value"},
    "ImportKeyPair": {"PublicKeyMaterial"},
    "CreateLoginProfile": {"Password"},
    "UpdateLoginProfile": {"Password"},
}


@dataclass(frozen=True)
class Call:
    """One request to an AWS service. `protocol` is "ec2", "query" or "json"."""

    service: str
    operation: str
    region: str
    protocol: str
    access_key: str
    parameters: dict[str, Any] = field(default_factory=dict)
    # Above 1, the SDK sends the call again, because an answer was lost or a refusal passes.
    attempt: int = 1

    def facts(self) -> dict[str, str]:
        """The caller's key, and the offering that an EC2 request names."""
        placement = self.parameters.get("Placement") or {}
        market = self.parameters.get("InstanceMarketOptions") or {}
        return {
            "InstanceType": str(self.parameters.get("InstanceType", "")),
            "AvailabilityZone": str(
                placement.get("AvailabilityZone")
                or self.parameters.get("AvailabilityZone", "")
            ),
            "MarketType": str(market.get("MarketType") or "on-demand"),
            "Region": self.region,
            "AccessKey": self.access_key,
        }


def read_call(environ: dict[str, Any], body: bytes) -> Call:
    """The call in a request. `operation` is empty if the request names none."""
    access_key, region, service = _credential_scope(environ)
    attempt = _attempt(environ)
    target = environ.get("HTTP_X_AMZ_TARGET", "")
    if target:
        operation = target.rsplit(".", 1)[-1]
        parameters = _without_secrets(operation, _json_object(body))
        return Call(service, operation, region, "json", access_key, parameters, attempt)
    form = _form(environ, body)
    operation = form.get("Action", "")
    if not service:
        service = "sts" if operation.startswith(_STS) else "ec2"
    if service == "ec2":
        parameters = _ec2_parameters(operation, form)
        protocol = "ec2"
    else:
        parameters = {k: v for k, v in form.items() if k not in ("Action", "Version")}
        protocol = "query"
    parameters = _without_secrets(operation, parameters)
    return Call(service, operation, region, protocol, access_key, parameters, attempt)


def _attempt(environ: dict[str, Any]) -> int:
    """The number of the attempt, in a header of AWS's SDKs: `attempt=2; max=3`."""
    found = re.search(r"\battempt=(\d+)", environ.get("HTTP_AMZ_SDK_REQUEST", ""))
    return int(found[1]) if found else 1


def _credential_scope(environ: dict[str, Any]) -> tuple[str, str, str]:
    """Access key id, region and service of a Signature Version 4 header."""
    header = environ.get("HTTP_AUTHORIZATION", "")
    _, _, rest = header.partition("Credential=")
    parts = rest.split(",", 1)[0].split("/")
    if len(parts) < 5:
        return "", DEFAULT_REGION, ""
    service = {"eventbridge": "events"}.get(parts[3], parts[3])
    return parts[0], parts[2], service


def _form(environ: dict[str, Any], body: bytes) -> dict[str, str]:
    pairs = parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True)
    content_type = environ.get("CONTENT_TYPE", "")
    if content_type.startswith("application/x-www-form-urlencoded"):
        pairs += parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)
    return dict(pairs)


def _json_object(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body or b"{}")
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


@cache
def _ec2_model() -> ServiceModel:
    return get_service_model("ec2")


def _ec2_parameters(operation: str, form: dict[str, str]) -> dict[str, Any]:
    """The parameters under the names of the API reference, typed by its model."""
    try:
        model = _ec2_model().operation_model(operation)
        parsed = PROTOCOL_PARSERS["ec2"](model).parse({"values": form})  # type: ignore[typeddict-item]  # reads no more
    except (OperationNotFoundError, ValueError, KeyError, TypeError):
        return {k: v for k, v in form.items() if k not in ("Action", "Version")}
    return dict(parsed)


def _without_secrets(operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
    secret = SECRET_PARAMETERS.get(operation, set())
    return {
        k: f"({len(str(v))} characters withheld)" if k in secret else v
        for k, v in parameters.items()
    }
