"""Launch templates as the source of a launch's parameters.

"Launch instances from a launch template" (EC2 user guide): parameters of the request
override the template's; tags of both are combined.
"""

from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.responses import EC2Response

from ..errors import AwsError
from .paging import page

AWS_TEMPLATE_ID = "aws:ec2launchtemplate:id"
AWS_TEMPLATE_VERSION = "aws:ec2launchtemplate:version"

# Parameters of a request with a template that do not describe the instance.
_ENVELOPE = ("LaunchTemplate", "ClientToken", "DryRun", "MinCount", "MaxCount")


# "This value can be between 1 and 200" (DescribeLaunchTemplates).
_PAGE = 200


class Templates(EC2Response):
    def describe_launch_templates(self) -> ActionResult:
        """Pages the list by id. moto would cut the list and have no next page, so the
        emulator asks moto for all templates."""
        asked = dict(self.params)
        self.params = {**asked, "MaxResults": len(self.ec2_backend.launch_templates)}
        result: ActionResult = super().describe_launch_templates()
        document: Any = result.result
        found = sorted(document["LaunchTemplates"], key=_position)
        shown, token = page(found, asked, 1, _PAGE, _PAGE, _position)
        document["LaunchTemplates"] = shown
        document["NextToken"] = token
        return result


def _position(template: dict[str, Any]) -> int:
    return int(template["LaunchTemplateId"].removeprefix("lt-"), 16)


def with_template(
    backend: Any, parameters: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The effective parameters, and the tags that EC2 adds for the template."""
    named = parameters.get("LaunchTemplate")
    if not named:
        return parameters, {}
    version = template_version(backend, named)
    merged: dict[str, Any] = dict(version.data)
    if "TagSpecifications" in merged:
        # moto stores the template's own tags with those for its instances.
        merged["TagSpecifications"] = [
            one
            for one in merged["TagSpecifications"]
            if one.get("ResourceType") != "launch-template"
        ]
    for name, value in parameters.items():
        if name == "TagSpecifications":
            merged[name] = [*merged.get(name, []), *value]
        elif isinstance(value, dict) and isinstance(merged.get(name), dict):
            merged[name] = {**merged[name], **value}
        else:
            merged[name] = value
    own = {
        AWS_TEMPLATE_ID: version.template.id,
        AWS_TEMPLATE_VERSION: str(version.number),
    }
    return merged, own


def template_version(backend: Any, named: dict[str, Any]) -> Any:
    """moto's version object for an id or a name, or EC2's error."""
    template_id, name = named.get("LaunchTemplateId"), named.get("LaunchTemplateName")
    if bool(template_id) == bool(name):
        raise AwsError(
            "InvalidParameterCombination",
            "Either a launch template ID or a launch template name must be specified, "
            "but not both.",
        )
    if template_id:
        template = backend.get_launch_template(template_id)
    else:
        template = backend.get_launch_template_by_name(name)
    return template.get_version(named.get("Version") or "$Default")


def only_instance_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in parameters.items() if k not in _ENVELOPE}
