"""Composes on-demand workspaces."""

import datetime

import grpc
from crossplane.function import logging, request, resource, response
from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from crossplane.function.proto.v1 import run_function_pb2_grpc as grpcv1

import resources
import user_data
from resources import Workspace


class FunctionRunner(grpcv1.FunctionRunnerService):
    """Handles gRPC RunFunctionRequests."""

    def __init__(self, files: dict[str, str]):
        self.log = logging.get_logger()
        self.files = files

    async def RunFunction(
        self, req: fnv1.RunFunctionRequest, _: grpc.aio.ServicerContext
    ) -> fnv1.RunFunctionResponse:
        """Run the function."""
        self.log.debug("Running function", tag=req.meta.tag)
        policy = resource.struct_to_dict(req.input)
        ttl = _duration(policy["refreshInterval"])
        rsp = response.to(req, ttl)
        response.require_resources(
            rsp,
            "catalogue",
            "apiextensions.crossplane.io/v1beta1",
            "EnvironmentConfig",
            match_name=policy["catalogue"]["name"],
        )
        catalogue = request.get_required_resource(req, "catalogue")
        if catalogue is None:
            response.fatal(rsp, "there is no catalogue")
            return rsp

        xr = resource.struct_to_dict(req.observed.composite.resource)
        parameters = xr["spec"]["parameters"]
        data = catalogue["data"]
        image = data["images"][parameters["region"]]["default"]
        keys = data.get("owners", {}).get(parameters["owner"], {}).get("publicKeys", [])
        keys = keys + parameters.get("ssh", {}).get("publicKeys", [])
        software = user_data.software_of(parameters, image)
        workspace = Workspace(
            policy=policy,
            xr=xr,
            parameters=parameters,
            image=image,
            software=software,
            network=data.get("networks", {}).get(parameters["region"], {}),
            user_data=user_data.document(
                parameters,
                software,
                keys,
                policy,
                self.files,
            ),
            resources=req.observed.resources,
        )
        response.require_resources(
            rsp,
            "attachments",
            resources.API_VERSION,
            "VolumeAttachment",
            match_labels={resources.WORKSPACE_LABEL: xr["metadata"]["name"]},
            namespace=workspace.namespace,
        )
        for name, (content, ready) in workspace.compose().items():
            desired = rsp.desired.resources[name]
            resource.update(desired, content)
            desired.ready = fnv1.READY_TRUE if ready else fnv1.READY_FALSE
        report(rsp, workspace)
        return rsp


def report(rsp: fnv1.RunFunctionResponse, workspace: Workspace) -> None:
    """Tell the user where the workspace stands."""
    instance, attachment = workspace.instance, workspace.attachment
    seen = instance["status"]["atProvider"]
    ip = seen["publicIp"]
    ssh = f"ssh developer@{ip}"
    status = {
        "phase": "Ready",
        "owner": workspace.parameters["owner"],
        "region": workspace.parameters["region"],
        "ssh": ssh,
        "instanceId": seen["id"],
        "instanceType": seen["instanceType"],
        "machine": seen["instanceType"],
        "capacityType": "OnDemand",
        "zone": seen["availabilityZone"],
        "publicIp": ip,
        "privateIp": seen["privateIp"],
        "image": workspace.xr["status"]["image"],
        "home": {
            "volumeId": attachment["spec"]["forProvider"]["volumeId"],
            "zone": seen["availabilityZone"],
            "attachedTo": seen["id"],
        },
    }
    status["opencvVersion"] = workspace.software["opencvVersion"]
    if "pytorchVersion" in workspace.software:
        status["pytorchVersion"] = workspace.software["pytorchVersion"]
    resource.update_status(rsp.desired.composite, status)
    details = {"host": ip, "port": "22", "ssh": ssh, "user": "developer"}
    for key, value in details.items():
        rsp.desired.composite.connection_details[key] = value.encode()
    running = workspace.is_ready(workspace.instance_name)
    attached = workspace.is_ready(workspace.attachment_name)
    ready = running and attached
    rsp.desired.composite.ready = fnv1.READY_TRUE if ready else fnv1.READY_FALSE
    response.set_conditions(
        rsp,
        condition("ConfigResolved", True, "Resolved"),
        condition("ComputeReady", running, "Available" if running else "Creating"),
        condition("HomeReady", attached, "Attached" if attached else "Attaching"),
    )
    for told in rsp.conditions:
        told.target = fnv1.TARGET_COMPOSITE_AND_CLAIM


def condition(typ: str, holds: bool, reason: str) -> resource.Condition:
    return resource.Condition(typ, str(holds), reason)


def _duration(text: str) -> datetime.timedelta:
    """A duration of one unit, for example `10m`."""
    seconds = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    return datetime.timedelta(seconds=int(text[:-1]) * seconds[text[-1]])
