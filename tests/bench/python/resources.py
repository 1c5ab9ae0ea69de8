"""The managed resources of an on-demand workspace.

Observed resources are read as dicts, by the helper that the SDK has for it, as
most functions do. Go's SDK has no other way than the like of it.
"""

import dataclasses
from collections.abc import Mapping

from crossplane.function import resource
from crossplane.function.proto.v1 import run_function_pb2 as fnv1

API_VERSION = "ec2.aws.m.upbound.io/v1beta1"
EXTERNAL_NAME = "crossplane.io/external-name"
PROVIDER_CONFIG = {"kind": "ClusterProviderConfig", "name": "default"}
WORKSPACE_LABEL = "platform.acme.io/workspace"


@dataclasses.dataclass
class Workspace:
    """A workspace, and everything that its resources depend on."""

    policy: dict
    xr: dict
    parameters: dict
    image: dict
    software: dict
    network: dict
    user_data: str
    resources: Mapping[str, fnv1.Resource]

    def __post_init__(self):
        claim = self.xr["spec"]["claimRef"]
        self.observed = {
            name: resource.struct_to_dict(found.resource)
            for name, found in self.resources.items()
        }
        self.namespace = claim["namespace"]
        self.title = f"{claim['namespace']}/{claim['name']}"
        self.group = self.observed["security-group"]
        self.home = self.observed["home"]
        self.instance_name, self.instance = self.find("instance-")
        self.attachment_name, self.attachment = self.find("home-attachment-")

    def find(self, prefix: str) -> tuple[str, dict]:
        """Get the observed resource whose name starts with the prefix."""
        return next(
            (name, found)
            for name, found in self.observed.items()
            if name.startswith(prefix)
        )

    def is_ready(self, name: str) -> bool:
        """Whether an observed managed resource is as it should be."""
        observed = self.resources.get(name)
        conditions = (
            resource.get_condition(observed, typ) for typ in ("Ready", "Synced")
        )
        return all(condition.status == "True" for condition in conditions)

    def compose(self) -> dict[str, tuple[dict, bool]]:
        """Build every desired resource, with its readiness."""
        cidrs = self.parameters.get("ssh", {}).get("allowedCidrs")
        cidrs = cidrs or self.policy["defaults"].get("sshCidrs", [])
        managed = {
            "security-group": self.security_group(),
            "egress": self.rule("egress", "-1", 0, "0.0.0.0/0"),
            self.instance_name: self.desired_instance(),
            "home": self.desired_home(),
            self.attachment_name: self.desired_attachment(),
        }
        for cidr in cidrs:
            name = "ssh-" + cidr.replace(".", "-").replace("/", "-")
            managed[name] = self.rule("ingress", "tcp", 22, cidr)
        desired = {
            name: (content, self.is_ready(name)) for name, content in managed.items()
        }
        instance, attachment = self.instance_name, self.attachment_name
        usages = {
            f"usage-security-group-by-{instance}": usage(
                self.namespace,
                self.group,
                self.instance,
                "EC2 refuses to delete a group that an instance is in",
            ),
            f"usage-home-by-{attachment}": usage(
                self.namespace,
                self.home,
                self.attachment,
                "EC2 refuses to delete a volume that is attached",
            ),
            f"usage-{instance}-by-{attachment}": usage(
                self.namespace,
                self.instance,
                self.attachment,
                "the home volume is detached in order before its instance goes",
            ),
        }
        return desired | {name: (content, True) for name, content in usages.items()}

    def tags(self, name: str | None = None) -> dict:
        tags = {"owner": self.parameters["owner"], "workspace": self.title}
        if name:
            tags["Name"] = name
        return tags | self.policy["instance"].get("tags", {})

    def managed(self, kind: str, for_provider: dict) -> dict:
        return {
            "apiVersion": API_VERSION,
            "kind": kind,
            "metadata": {"namespace": self.namespace},
            "spec": {
                "providerConfigRef": self.policy.get(
                    "onDemandProviderConfigRef", PROVIDER_CONFIG
                ),
                "forProvider": {"region": self.parameters["region"]} | for_provider,
            },
        }

    def security_group(self) -> dict:
        metadata = self.xr["metadata"]
        group = {
            "name": f"gpu-workspace-{metadata['name']}-{metadata['uid'].split('-')[0]}",
            "description": f"SSH to the workspace {self.title}",
            "tags": self.tags(),
        }
        made = self.group["spec"]["forProvider"]
        if "vpcId" in made:
            group["vpcId"] = made["vpcId"]
        elif "vpcId" in self.network:
            group["vpcId"] = self.network["vpcId"]
        return self.managed("SecurityGroup", group)

    def rule(self, direction: str, protocol: str, port: int, cidr: str) -> dict:
        return self.managed(
            "SecurityGroupRule",
            {
                "securityGroupIdSelector": {"matchControllerRef": True},
                "type": direction,
                "protocol": protocol,
                "fromPort": port,
                "toPort": port,
                "cidrBlocks": [cidr],
            },
        )

    def desired_instance(self) -> dict:
        policy = self.policy["instance"]
        root = {"encrypted": True, "volumeType": "gp3", "deleteOnTermination": True}
        if "rootVolumeSizeGiB" in policy:
            root["volumeSize"] = policy["rootVolumeSizeGiB"]
        instance = {
            "ami": self.image["id"],
            "instanceType": self.parameters["instanceType"],
            "userData": self.user_data,
            "vpcSecurityGroupIdSelector": {"matchControllerRef": True},
            "metadataOptions": {
                "httpEndpoint": "enabled",
                "httpTokens": "required",
                "httpPutResponseHopLimit": 1,
                "instanceMetadataTags": "disabled",
            },
            "rootBlockDevice": root,
            "tags": self.tags(self.title),
            "volumeTags": self.tags(f"{self.title} home"),
        }
        if "iamInstanceProfile" in policy:
            instance["iamInstanceProfile"] = policy["iamInstanceProfile"]
        made = self.instance["spec"]["forProvider"]
        if self.network.get("subnetIds"):
            instance["subnetId"] = self.network["subnetIds"][0]
        elif "availabilityZone" in made:
            instance["availabilityZone"] = made["availabilityZone"]
        return self.managed("Instance", instance)

    def desired_home(self) -> dict:
        seen = self.instance["status"]["atProvider"]
        home = self.managed(
            "EBSVolume",
            {
                "availabilityZone": seen["availabilityZone"],
                "size": self.parameters["home"]["sizeGiB"],
                "type": "gp3",
                "encrypted": True,
                "tags": self.tags(f"{self.title} home"),
            },
        )
        home["metadata"]["annotations"] = {EXTERNAL_NAME: self.volume_id()}
        home["spec"]["managementPolicies"] = ["Observe", "Update", "LateInitialize"]
        return home

    def volume_id(self) -> str:
        return self.home["metadata"]["annotations"][EXTERNAL_NAME]

    def desired_attachment(self) -> dict:
        seen = self.instance["status"]["atProvider"]
        attachment = self.managed(
            "VolumeAttachment",
            {
                "deviceName": "/dev/sdf",
                "instanceId": seen["id"],
                "volumeId": self.volume_id(),
                "stopInstanceBeforeDetaching": True,
            },
        )
        name = self.xr["metadata"]["name"]
        attachment["metadata"]["labels"] = {WORKSPACE_LABEL: name}
        return attachment


def usage(namespace: str, of: dict, by: dict, reason: str) -> dict:
    """Keep one resource until another is gone."""

    def end(observed: dict) -> dict:
        return {
            "apiVersion": API_VERSION,
            "kind": observed["kind"],
            "resourceRef": {"name": observed["metadata"]["name"]},
        }

    replays = {"replayDeletion": True} if of["kind"] == "SecurityGroup" else {}
    return {
        "apiVersion": "protection.crossplane.io/v1beta1",
        "kind": "Usage",
        "metadata": {"namespace": namespace},
        "spec": {
            "of": end(of),
            "by": end(by),
            "reason": reason,
            **replays,
        },
    }
