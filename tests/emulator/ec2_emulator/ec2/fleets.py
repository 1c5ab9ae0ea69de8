"""EC2 Fleet of type `instant`: one attempt, instances and errors in one answer.

The emulator refuses fleets of type `request` and `maintain`, and Spot Fleet, because
those of moto have neither prices nor capacity.
"""

import uuid
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.responses._base_response import EC2BaseResponse

from ..errors import AwsError
from ..faults import Faults
from .fleet_plan import Offering, plan_fleet
from .instance import EmulatedInstance
from .launch import launch
from .region import Region
from .wire import Answer

AWS_FLEET_ID = "aws:ec2:fleet-id"
_TAGGABLE = ("fleet", "instance", "volume", "network-interface")


class Fleets(EC2BaseResponse):
    here: Region
    faults: Faults

    def create_fleet(self) -> ActionResult:
        parameters = dict(self.params)
        if parameters.get("Type", "maintain") != "instant":
            raise _not_emulated(f"Fleets of type {parameters.get('Type', 'maintain')}")
        token = parameters.get("ClientToken")
        refuses = self.here.settings.refuse_ended_tokens
        earlier = self.here.tokens.find("CreateFleet", token, parameters, refuses)
        if earlier is not None:
            return Answer(earlier)
        _check_tags(parameters)
        self.error_on_dryrun()
        plan = plan_fleet(self.here, self.faults, parameters)
        fleet_id = f"fleet-{uuid.uuid4()}"
        launched: list[dict[str, Any]] = []
        born: list[EmulatedInstance] = []
        for share in plan.shares:
            own_tags = {**share.offering.own_tags, AWS_FLEET_ID: fleet_id}
            facts = {**share.request.facts, "AvailabilityZone": share.zone}
            fault = self.faults.take_at_birth("CreateFleet", parameters, facts)
            instances = launch(
                self.here, share.request, share.zone, share.count, own_tags, fault
            )
            born += instances
            launched.append(
                {
                    **_described(share.offering),
                    "InstanceIds": [one.id for one in instances],
                    "InstanceType": share.request.instance_type,
                }
            )
        errors = [
            {
                **_described(offering),
                "ErrorCode": error.code,
                "ErrorMessage": error.message,
            }
            for offering, error in plan.refusals
        ]
        answer = {"FleetId": fleet_id, "Instances": launched, "Errors": errors}
        self.here.tokens.bind(
            "CreateFleet",
            token,
            parameters,
            answer,
            lambda: self.here.ended_at(born) if born else None,
        )
        return Answer(answer)

    def describe_fleets(self) -> ActionResult:
        raise _not_emulated("DescribeFleets")

    def delete_fleets(self) -> ActionResult:
        raise _not_emulated("DeleteFleets")

    def request_spot_fleet(self) -> ActionResult:
        raise _not_emulated("RequestSpotFleet")


def _described(offering: Offering) -> dict[str, Any]:
    return {
        "LaunchTemplateAndOverrides": offering.described(),
        "Lifecycle": offering.market,
    }


def _check_tags(parameters: dict[str, Any]) -> None:
    capacity = parameters.get("TargetCapacitySpecification") or {}
    spot = capacity.get("DefaultTargetCapacityType") == "spot" or capacity.get(
        "SpotTargetCapacity"
    )
    taggable = (*_TAGGABLE, "spot-instances-request") if spot else _TAGGABLE
    for one in parameters.get("TagSpecifications") or []:
        if one.get("ResourceType") not in taggable:
            raise AwsError(
                "InvalidParameterValue",
                f"'{one.get('ResourceType')}' is not a valid taggable resource type "
                "for this operation.",
            )


def _not_emulated(what: str) -> AwsError:
    return AwsError("NotImplementedByEmulator", f"Not emulated: {what}", 501)
