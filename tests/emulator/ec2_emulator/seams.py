"""All places where this emulator replaces or uses internals of moto, with the reasons.

They depend on one release of moto. `attach` fails if one of them does not exist.
"""

import importlib
from typing import Any

from moto.ec2.models import EC2Backend, ec2_backends
from moto.ec2.models.core import TaggedEC2Resource
from moto.ec2.responses import EC2Response
from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE, get_prefix
from moto.events.models import EventsBackend, events_backends
from moto.moto_api._internal.models import moto_api_backend
from moto.ssm.models import SimpleSystemManagerBackend, ssm_backends

ROOT_PATH = "{0}/"

# Internals that the emulator uses without replacing them.
RELIED_ON: tuple[tuple[Any, str], ...] = (
    (EC2Backend, "create_volume"),
    (EC2Backend, "create_network_interface"),
    (EC2Backend, "get_default_subnets"),
    (EC2Backend, "get_default_security_group"),
    (EC2Backend, "create_tags"),
    (EC2Backend, "_iterate_security_rules"),
    (EC2Backend, "_add_source_group"),
    (EC2Response, "_process_rules_from_querystring"),
    (EC2Response, "call_action"),
    (EC2Response, "setup_class"),
    (EventsBackend, "put_events"),
    (SimpleSystemManagerBackend, "put_parameter"),
)


class MissingSeam(RuntimeError):
    """The installed moto lacks an internal that this emulator uses."""


class Backends:
    """moto's state, by account and region."""

    def ec2(self, account: str, region: str) -> EC2Backend:
        backend: EC2Backend = ec2_backends[account][region]
        return backend

    def ssm(self, account: str, region: str) -> SimpleSystemManagerBackend:
        backend: SimpleSystemManagerBackend = ssm_backends[account][region]
        return backend

    def events(self, account: str, region: str) -> EventsBackend:
        backend: EventsBackend = events_backends[account][region]
        return backend

    def reset(self) -> None:
        moto_api_backend.reset()


def attach(endpoint: type[EC2Response]) -> None:
    """Replaces moto's endpoint, and changes the parts that no subclass can change."""
    for owner, name in RELIED_ON:
        _require(owner, name)
    _serve_ec2_by(endpoint)
    _look_tags_up_directly()


def _serve_ec2_by(endpoint: type[EC2Response]) -> None:
    """Routes EC2 requests to the emulator's endpoint, a subclass of moto's."""
    urls = importlib.import_module("moto.ec2.urls")
    _require(urls, "url_paths")
    if urls.url_paths.get(ROOT_PATH) is None:
        raise MissingSeam(f"moto.ec2.urls.url_paths has no {ROOT_PATH!r}")
    urls.url_paths[ROOT_PATH] = endpoint.dispatch


def _look_tags_up_directly() -> None:
    """Reads a resource's tags by its id.

    moto scans all tags of the region for each resource, so that the time to describe n
    resources is quadratic in n. EC2 answers a page of 1,000 within seconds.
    """
    _require(TaggedEC2Resource, "get_tags")

    def get_tags(self: Any) -> list[dict[str, str]]:
        kind = EC2_PREFIX_TO_RESOURCE.get(get_prefix(self.id), "")
        return [
            {
                "resource_id": self.id,
                "key": key,
                "value": value,
                "resource_type": kind,
            }
            for key, value in self.ec2_backend.tags.get(self.id, {}).items()
        ]

    setattr(TaggedEC2Resource, "get_tags", get_tags)  # noqa: B010


def _require(owner: Any, name: str) -> None:
    if not hasattr(owner, name):
        raise MissingSeam(
            f"moto's {getattr(owner, '__name__', owner)}.{name} has vanished: pin the "
            "moto release of requirements.txt, or move this seam"
        )
