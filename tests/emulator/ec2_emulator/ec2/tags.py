"""Tags: the keys, values and resources that EC2 accepts.

"Tag your Amazon EC2 resources" (EC2 user guide): keys have up to 128 characters and no
prefix `aws:`, values up to 256 characters. With tags in instance metadata, keys have no
spaces and no "/".
"""

import re
from typing import Any

from moto.core.responses import ActionResult, EmptyResult
from moto.ec2.models import validate_resource_ids
from moto.ec2.responses.tags import TagResponse

from ..errors import AwsError
from .region import Region

LAUNCH_RESOURCES = ("instance", "volume", "network-interface", "spot-instances-request")
MAX_TAGS = 50

_METADATA_KEY = re.compile(r"[0-9a-zA-Z\-_+=,.@:]{1,255}")
_RESERVED_METADATA_KEYS = (".", "..", "_index")


def check_tags(tags: dict[str, str], in_metadata: bool = False) -> None:
    """Raises EC2's error for a key or value that EC2 refuses."""
    for key, value in tags.items():
        if key.lower().startswith("aws:"):
            raise AwsError(
                "InvalidParameterValue",
                f"Tag keys starting with 'aws:' are reserved for internal use: {key}",
            )
        if not key or len(key) > 128:
            raise AwsError(
                "InvalidParameterValue",
                f"Tag key exceeds the maximum length of 128 characters: {key}",
            )
        if len(value) > 256:
            raise AwsError(
                "InvalidParameterValue",
                f"Tag value exceeds the maximum length of 256 characters: {key}",
            )
        if in_metadata:
            check_metadata_key(key)
    if len(tags) > MAX_TAGS:
        raise AwsError("TagLimitExceeded", "The maximum number of Tags is 50.")


def check_metadata_key(key: str) -> None:
    if _METADATA_KEY.fullmatch(key) and key not in _RESERVED_METADATA_KEYS:
        return
    raise AwsError(
        "InvalidParameterValue",
        f"'{key}' is not a valid tag key. Tag keys must match pattern "
        "([0-9a-zA-Z\\-_+=,.@:]{1,255}), and must not be a reserved name "
        "('.', '..', '_index')",
    )


def launch_tags(parameters: dict[str, Any], spot: bool) -> dict[str, dict[str, str]]:
    """The tags in the TagSpecifications of a launch, by resource type."""
    in_metadata = _tags_in_metadata(parameters.get("MetadataOptions"))
    tags: dict[str, dict[str, str]] = {}
    for one in parameters.get("TagSpecifications") or []:
        kind = one.get("ResourceType", "")
        if kind not in LAUNCH_RESOURCES or (kind.startswith("spot-") and not spot):
            raise AwsError(
                "InvalidParameterValue",
                f"'{kind}' is not a valid taggable resource type for this operation.",
            )
        given = {tag["Key"]: tag.get("Value", "") for tag in one.get("Tags") or []}
        if not given:
            raise AwsError(
                "InvalidParameterValue",
                "Tag specification must have at least one tag",
            )
        check_tags(given, in_metadata and kind == "instance")
        tags.setdefault(kind, {}).update(given)
    return tags


def _tags_in_metadata(options: dict[str, Any] | None) -> bool:
    return (options or {}).get("InstanceMetadataTags") == "enabled"


class Tagging(TagResponse):
    """CreateTags and DeleteTags refuse resources that do not exist."""

    here: Region

    def create_tags(self) -> ActionResult:
        ids = self._get_param("Resources", [])
        tags = {tag["Key"]: tag.get("Value", "") for tag in self._get_param("Tags", [])}
        if not tags:
            raise AwsError(
                "MissingParameter", "The request must contain the parameter tagSet"
            )
        self._check_resources(ids)
        check_tags(tags)
        for one in ids:
            instance = self.here.instances.get(one)
            if instance is not None and (
                instance.metadata_options.instance_metadata_tags == "enabled"
            ):
                for key in tags:
                    check_metadata_key(key)
        self.error_on_dryrun()
        self.ec2_backend.create_tags(ids, tags)
        return EmptyResult()

    def delete_tags(self) -> ActionResult:
        ids = self._get_param("Resources", [])
        self._check_resources(ids)
        self.error_on_dryrun()
        given = self._get_param("Tags", [])
        for one in ids:
            tags: dict[str, str | None]
            if given:
                tags = {tag["Key"]: tag.get("Value") for tag in given}
            else:
                # Without tags in the request, EC2 deletes all but its own.
                every = self.ec2_backend.tags.get(one, {})
                tags = {key: None for key in every if not key.startswith("aws:")}
            self.ec2_backend.delete_tags([one], tags)
        return EmptyResult()

    def _check_resources(self, ids: list[str]) -> None:
        validate_resource_ids(ids)
        instances = [one for one in ids if one.startswith("i-")]
        self.here.find(instances)
        backend = self.ec2_backend
        for one in ids:
            if one.startswith("sir-") and one not in backend.spot_instance_requests:
                raise AwsError(
                    "InvalidSpotInstanceRequestID.NotFound",
                    f"The spot instance request ID '{one}' does not exist",
                )
            if one.startswith("eni-") and one not in backend.enis:
                raise AwsError(
                    "InvalidNetworkInterfaceID.NotFound",
                    f"The networkInterface ID '{one}' does not exist",
                )
        others = [one for one in ids if not one.startswith(("i-", "sir-", "eni-"))]
        backend.do_resources_exist(others)
