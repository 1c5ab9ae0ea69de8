"""The operations on instances: run, describe, stop, start, terminate."""

import base64
from typing import Any

from moto.core.responses import ActionResult, EmptyResult
from moto.core.types import Base64EncodedString
from moto.ec2.models.instance_types import INSTANCE_TYPES
from moto.ec2.responses.instances import InstanceResponse

from ..errors import AwsError
from ..faults import Faults
from .filters import select
from .instance import EmulatedInstance
from .instance_filters import INSTANCE_FILTERS, NOT_EMULATED
from .instance_view import describe, reservation, reservations_of
from .launch import launch, place
from .launch_request import check_request
from .paging import page
from .region import Region
from .templates import with_template
from .wire import Answer


class Instances(InstanceResponse):
    here: Region
    faults: Faults

    def run_instances(self) -> ActionResult:
        here, parameters = self.here, dict(self.params)
        token = parameters.get("ClientToken")
        scope = self._token_scope(parameters)
        refuses = here.settings.refuse_ended_tokens
        earlier = here.tokens.find(scope, token, parameters, refuses)
        if earlier is not None:
            return _launched(earlier)
        effective, own_tags = with_template(self.ec2_backend, parameters)
        request = check_request(self.ec2_backend, effective)
        self.error_on_dryrun()
        try:
            zone, count = place(here, self.faults, "RunInstances", request)
        except AwsError:
            here.tokens.bind(scope, token, parameters)
            raise
        fault = self.faults.take_at_birth("RunInstances", parameters, request.facts)
        instances = launch(here, request, zone, count, own_tags, fault)
        here.tokens.bind(
            scope, token, parameters, instances, lambda: here.ended_at(instances)
        )
        return _launched(instances)

    def describe_instances(self) -> ActionResult:
        parameters = dict(self.params)
        self.error_on_dryrun()
        instances = self._asked_for(parameters)
        self._check_zones(instances if parameters.get("InstanceIds") else None)
        found = select(
            instances,
            parameters.get("Filters") or [],
            INSTANCE_FILTERS,
            self._tags,
            NOT_EMULATED,
        )
        shown, token = page(found, parameters, 5, 1000, None, lambda one: one.sequence)
        return Answer({"Reservations": reservations_of(shown), "NextToken": token})

    def terminate_instances(self) -> ActionResult:
        instances = self._named()
        self._check_zones(instances)
        self.error_on_dryrun()
        # Stop protection also prevents a termination: cloud-custodian,
        # test_ec2_stop_with_protection_enabled_ephemeral.
        protected = [
            one
            for one in instances
            if one.disable_api_termination or one.disable_api_stop
        ]
        # The request still takes effect in zones without a protected instance.
        refused = {one.availability_zone for one in protected}
        changes = [
            _change(one, one.terminate)
            for one in instances
            if one.availability_zone not in refused
        ]
        if protected:
            first = protected[0]
            kind = "Termination" if first.disable_api_termination else "Stop"
            raise AwsError(
                "OperationNotPermitted",
                f"The instance '{first.id}' may not be terminated. Modify its "
                f"'disableApi{kind}' instance attribute and try again.",
            )
        return Answer({"TerminatingInstances": changes})

    def _check_zones(self, named: list[EmulatedInstance] | None) -> None:
        """Fails a call that names no instance or one of the zone that is down."""
        down = self.here.settings.zone_down
        if not down:
            return
        if named is None or any(one.availability_zone == down for one in named):
            raise AwsError("InternalError", "An internal error has occurred", 500)

    def stop_instances(self) -> ActionResult:
        instances = self._named()
        for one in instances:
            _check_can_stop(one)
        self.error_on_dryrun()
        return Answer({"StoppingInstances": [_change(i, i.stop) for i in instances]})

    def start_instances(self) -> ActionResult:
        instances = self._named()
        for one in instances:
            if one.state not in ("stopped", "running", "pending"):
                raise _incorrect_state(one, "started")
        self.error_on_dryrun()
        return Answer({"StartingInstances": [_change(i, i.start) for i in instances]})

    def reboot_instances(self) -> ActionResult:
        instances = self._named()
        for one in instances:
            if one.state != "running":
                raise _incorrect_state(one, "rebooted")
        self.error_on_dryrun()
        for one in instances:
            one.reboot()
        return EmptyResult()

    def get_console_output(self) -> ActionResult:
        """Answers with the machine's console output, or with the text that a test has
        set for an instance that has no machine. Only instances on Nitro have a latest
        output ("GetConsoleOutput", API reference)."""
        (instance,) = self.here.find([self._get_param("InstanceId")])
        self.error_on_dryrun()
        hypervisor = INSTANCE_TYPES[instance.instance_type].get("Hypervisor")
        if self._get_param("Latest", False) and hypervisor == "xen":
            raise AwsError(
                "UnsupportedOperation",
                "This instance type does not support retrieving the latest console logs.",
            )
        machines = instance.machines
        output = machines.console(instance) if machines else instance.console
        return Answer(
            {
                "InstanceId": instance.id,
                "Output": base64.b64encode(output).decode(),
                "Timestamp": self.here.clock.now(),
            }
        )

    def modify_instance_metadata_options(self) -> ActionResult:
        """Changes only the options in the request. moto would reset the others."""
        (instance,) = self.here.find([self._get_param("InstanceId")])
        self.error_on_dryrun()
        options = instance.metadata_options
        for name, attribute in _METADATA_ATTRIBUTES.items():
            value = self._get_param(name)
            if value is not None:
                setattr(options, attribute, value)
        shown = describe(instance)["MetadataOptions"]
        return Answer({"InstanceId": instance.id, "InstanceMetadataOptions": shown})

    def modify_instance_attribute(self) -> ActionResult:
        """Some attributes of an instance can change only while it is stopped."""
        (instance,) = self.here.find([self._get_param("InstanceId")])
        parameters = dict(self.params)
        named = [parameters.get("Attribute") or ""]
        named += [name[0].lower() + name[1:] for name in parameters]
        if instance.state != "stopped" and _STOPPED_ONLY.intersection(named):
            raise AwsError(
                "IncorrectInstanceState",
                f"The instance '{instance.id}' is not in the 'stopped' state.",
            )
        user_data = (parameters.get("UserData") or {}).get("Value")
        if user_data is None:
            result: ActionResult = super().modify_instance_attribute()
            self.here.groups_changed()
            return result
        self.error_on_dryrun()
        # The parser has already decoded the value. moto would decode it again.
        instance.user_data = Base64EncodedString.from_raw_bytes(user_data)
        return EmptyResult()

    def _token_scope(self, parameters: dict[str, Any]) -> str:
        """The scope of a client token: the zone if the request names a zone or a
        subnet, else the region."""
        zone = (parameters.get("Placement") or {}).get("AvailabilityZone")
        subnet_id = parameters.get("SubnetId")
        for subnets in self.ec2_backend.subnets.values():
            if subnet_id in subnets:
                zone = subnets[subnet_id].availability_zone
        return f"RunInstances/{zone}" if zone else "RunInstances"

    def _named(self) -> list[EmulatedInstance]:
        ids = self._get_param("InstanceIds", [])
        if not ids:
            raise AwsError(
                "MissingParameter",
                "The request must contain the parameter InstanceId",
            )
        return self.here.find(ids)

    def _asked_for(self, parameters: dict[str, Any]) -> list[EmulatedInstance]:
        ids = parameters.get("InstanceIds") or []
        if not ids:
            return [one for one in self.here.instances.values() if one.visible]
        if parameters.get("MaxResults") is not None:
            raise AwsError(
                "InvalidParameterCombination",
                "The parameter instancesSet cannot be used with the parameter "
                "maxResults",
            )
        return self.here.find_visible(ids)

    def _tags(self, instance: EmulatedInstance) -> dict[str, str]:
        tags: dict[str, str] = self.ec2_backend.tags.get(instance.id, {})
        return tags


# "ModifyInstanceAttribute" (API reference): the instance must be stopped.
_STOPPED_ONLY = frozenset({"instanceType", "kernel", "ramdisk", "userData"})

_METADATA_ATTRIBUTES = {
    "HttpTokens": "http_tokens",
    "HttpPutResponseHopLimit": "http_put_response_hop_limit",
    "HttpEndpoint": "http_endpoint",
    "HttpProtocolIpv6": "http_protocol_ipv6",
    "InstanceMetadataTags": "instance_metadata_tags",
}


def _launched(instances: list[EmulatedInstance]) -> ActionResult:
    first = instances[0]
    views = [describe(one) for one in instances]
    return Answer(reservation(first.reservation_id, first.owner_id, views))


def _change(instance: EmulatedInstance, act: Any) -> dict[str, Any]:
    before = act()
    return {
        "InstanceId": instance.id,
        "PreviousState": {"Code": before.code, "Name": before.name},
        "CurrentState": {"Code": instance.state_code, "Name": instance.state},
    }


def _check_can_stop(instance: EmulatedInstance) -> None:
    if instance.is_one_time_spot:
        raise AwsError(
            "UnsupportedOperation",
            f"You can't stop the Spot Instance '{instance.id}' because it is "
            "associated with a one-time Spot Instance request. You can only stop Spot "
            "Instances associated with persistent Spot Instance requests.",
        )
    if instance.disable_api_stop:
        raise AwsError(
            "OperationNotPermitted",
            f"The instance '{instance.id}' may not be stopped. Modify its "
            "'disableApiStop' instance attribute and try again.",
        )
    if instance.state not in ("running", "stopping", "stopped"):
        raise _incorrect_state(instance, "stopped")


def _incorrect_state(instance: EmulatedInstance, verb: str) -> AwsError:
    return AwsError(
        "IncorrectInstanceState",
        f"The instance '{instance.id}' is not in a state from which it can be {verb}.",
    )
