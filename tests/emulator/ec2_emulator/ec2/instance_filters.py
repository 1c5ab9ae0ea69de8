"""The filters of DescribeInstances, as the API reference lists them."""

from collections.abc import Callable

from .filters import Values, flag
from .instance import EmulatedInstance

Getter = Callable[[EmulatedInstance], Values]


def _devices(read: Callable[[str, object], str]) -> Getter:
    return lambda i: [read(name, block) for name, block in i.get_block_device_mapping]


def _nics(read: Callable[[object], str | None]) -> Getter:
    return lambda i: [value for nic in i.nics.values() if (value := read(nic))]


INSTANCE_FILTERS: dict[str, Getter] = {
    "architecture": lambda i: i.architecture,
    "availability-zone": lambda i: i.availability_zone,
    "block-device-mapping.delete-on-termination": _devices(
        lambda _, block: flag(block.delete_on_termination)  # type: ignore[attr-defined]
    ),
    "block-device-mapping.device-name": _devices(lambda name, _: name),
    "block-device-mapping.status": _devices(lambda *_: "attached"),
    "block-device-mapping.volume-id": _devices(
        lambda _, block: block.volume_id  # type: ignore[attr-defined]
    ),
    "client-token": lambda i: i.client_token,
    "dns-name": lambda i: i.public_dns_name,
    "hypervisor": lambda i: "xen",
    "iam-instance-profile.arn": lambda i: i.profile["Arn"] if i.profile else None,
    "iam-instance-profile.id": lambda i: i.profile["Id"] if i.profile else None,
    "image-id": lambda i: i.image_id,
    "instance-id": lambda i: i.id,
    "instance-lifecycle": lambda i: i.lifecycle,
    "instance-state-code": lambda i: str(i.state_code),
    "instance-state-name": lambda i: i.state,
    "instance-type": lambda i: i.instance_type,
    "instance.group-id": lambda i: [group.id for group in i.security_groups],
    "instance.group-name": lambda i: [group.name for group in i.security_groups],
    "ip-address": lambda i: i.public_ip,
    "key-name": lambda i: i.key_name,
    "launch-index": lambda i: str(i.ami_launch_index),
    "launch-time": lambda i: i.launch_time.strftime("%Y-%m-%dT%H:%M:%S.000Z"),
    "metadata-options.http-endpoint": lambda i: i.metadata_options.http_endpoint,
    "metadata-options.http-put-response-hop-limit": lambda i: str(
        i.metadata_options.http_put_response_hop_limit
    ),
    "metadata-options.http-tokens": lambda i: i.metadata_options.http_tokens,
    "metadata-options.instance-metadata-tags": lambda i: (
        i.metadata_options.instance_metadata_tags
    ),
    "metadata-options.state": lambda i: i.metadata_options.state,
    "monitoring-state": lambda i: i.monitoring_state,
    "network-interface.addresses.private-ip-address": lambda i: i.private_ip,
    "network-interface.addresses.association.public-ip": lambda i: i.public_ip,
    "network-interface.availability-zone": lambda i: i.availability_zone,
    "network-interface.group-id": lambda i: [g.id for g in i.security_groups],
    "network-interface.network-interface-id": _nics(
        lambda nic: nic.id  # type: ignore[attr-defined]
    ),
    "network-interface.subnet-id": lambda i: i.subnet_id,
    "network-interface.vpc-id": lambda i: i.vpc_id,
    "owner-id": lambda i: i.owner_id,
    "platform-details": lambda i: "Linux/UNIX",
    "private-dns-name": lambda i: i.private_dns_name,
    "private-ip-address": lambda i: i.private_ip,
    "reason": lambda i: i.state_transition_reason,
    "reservation-id": lambda i: i.reservation_id,
    "root-device-name": lambda i: i.root_device_name,
    "root-device-type": lambda i: "ebs",
    "source-dest-check": lambda i: flag(i.source_dest_check),
    "spot-instance-request-id": lambda i: i.spot_request.id if i.spot_request else None,
    "state-reason-code": lambda i: i.state_reason.code or None,
    "state-reason-message": lambda i: i.state_reason.message or None,
    "subnet-id": lambda i: i.subnet_id,
    "tenancy": lambda i: "default",
    "usage-operation": lambda i: "RunInstances",
    "virtualization-type": lambda i: i.virtualization_type,
    "vpc-id": lambda i: i.vpc_id,
}

# EC2's filters that are not emulated. Their error differs from that of unknown filters.
NOT_EMULATED = frozenset(
    {
        "affinity",
        "block-device-mapping.attach-time",
        "boot-mode",
        "capacity-reservation-id",
        "capacity-reservation-specification.capacity-reservation-preference",
        "current-instance-boot-mode",
        "ena-support",
        "enclave-options.enabled",
        "hibernation-options.configured",
        "host-id",
        "kernel-id",
        "outpost-arn",
        "placement-group-name",
        "placement-partition-number",
        "platform",
        "product-code",
        "product-code.type",
        "ramdisk-id",
        "requester-id",
    }
)
