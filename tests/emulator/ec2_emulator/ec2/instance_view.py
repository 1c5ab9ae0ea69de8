"""An instance as DescribeInstances and RunInstances show it."""

from typing import Any

from .instance import EmulatedInstance

_NETWORK_CARD = 0


def reservations_of(instances: list[EmulatedInstance]) -> list[dict[str, Any]]:
    """The instances grouped by reservation, in their order."""
    grouped: dict[str, list[dict[str, Any]]] = {}
    for instance in instances:
        grouped.setdefault(instance.reservation_id, []).append(describe(instance))
    owner = instances[0].owner_id if instances else ""
    return [reservation(one, owner, members) for one, members in grouped.items()]


def reservation(
    reservation_id: str, owner: str, instances: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "ReservationId": reservation_id,
        "OwnerId": owner,
        "Groups": [],
        "Instances": instances,
    }


def describe(instance: EmulatedInstance) -> dict[str, Any]:
    """The fields of EC2's answer for an instance, as far as the emulator has them."""
    options = instance.metadata_options
    view: dict[str, Any] = {
        "AmiLaunchIndex": instance.ami_launch_index,
        "Architecture": instance.architecture,
        "BlockDeviceMappings": _block_devices(instance),
        "CapacityReservationSpecification": {
            "CapacityReservationPreference": instance.capacity_reservations
        },
        "ClientToken": instance.client_token or "",
        "EbsOptimized": instance.ebs_optimized,
        "EnaSupport": True,
        "EnclaveOptions": {"Enabled": False},
        "HibernationOptions": instance.hibernation_options or {"Configured": False},
        "Hypervisor": "xen",
        "IamInstanceProfile": instance.profile,
        "ImageId": instance.image_id,
        "InstanceId": instance.id,
        "InstanceLifecycle": instance.lifecycle,
        "InstanceType": instance.instance_type,
        "KeyName": instance.key_name,
        "LaunchTime": instance.launch_time,
        "MaintenanceOptions": {"AutoRecovery": "default"},
        "MetadataOptions": {
            "State": options.state,
            "HttpTokens": options.http_tokens,
            "HttpPutResponseHopLimit": options.http_put_response_hop_limit,
            "HttpEndpoint": options.http_endpoint,
            "HttpProtocolIpv6": options.http_protocol_ipv6,
            "InstanceMetadataTags": options.instance_metadata_tags,
        },
        "Monitoring": {"State": instance.monitoring_state},
        "NetworkInterfaces": [],
        "Placement": {
            "AvailabilityZone": instance.availability_zone,
            "GroupName": "",
            "Tenancy": "default",
        },
        "PlatformDetails": "Linux/UNIX",
        "PrivateDnsName": "",
        "PublicDnsName": "",
        "RootDeviceName": instance.root_device_name,
        "RootDeviceType": "ebs",
        "SecurityGroups": [],
        "SourceDestCheck": instance.source_dest_check,
        "State": {"Code": instance.state_code, "Name": instance.state},
        "StateTransitionReason": instance.state_transition_reason,
        "Tags": tag_list(instance.ec2_backend, instance.id),
        "UsageOperation": "RunInstances",
        "VirtualizationType": instance.virtualization_type,
    }
    if instance.state_reason.code:
        reason = instance.state_reason
        view["StateReason"] = {"Code": reason.code, "Message": reason.message}
    if instance.spot_request is not None:
        view["SpotInstanceRequestId"] = instance.spot_request.id
    return view | _network(instance) if instance.has_network else view


def _network(instance: EmulatedInstance) -> dict[str, Any]:
    return {
        "NetworkInterfaces": [_interface(nic) for nic in instance.nics.values()],
        "PrivateDnsName": instance.private_dns_name,
        "PrivateIpAddress": instance.private_ip,
        "PublicDnsName": instance.public_dns_name or "",
        "PublicIpAddress": instance.public_ip,
        "SecurityGroups": _groups(instance.security_groups),
        "SubnetId": instance.subnet_id,
        "VpcId": instance.vpc_id,
    }


def tag_list(backend: Any, resource_id: str) -> list[dict[str, str]] | None:
    tags = backend.tags.get(resource_id)
    if not tags:
        return None
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def _block_devices(instance: EmulatedInstance) -> list[dict[str, Any]]:
    return [
        {
            "DeviceName": device,
            "Ebs": {
                "AttachTime": block.attach_time,
                "DeleteOnTermination": block.delete_on_termination,
                "Status": _attachment_status(instance, block.volume_id),
                "VolumeId": block.volume_id,
            },
        }
        for device, block in instance.get_block_device_mapping
    ]


def _attachment_status(instance: EmulatedInstance, volume_id: str) -> str:
    attachment = instance.ec2_backend.volumes[volume_id].attachment
    status: str = attachment.status
    return status


def _interface(nic: Any) -> dict[str, Any]:
    association = None
    if nic.public_ip:
        association = {
            "IpOwnerId": "amazon" if nic.public_ip_auto_assign else nic.owner_id,
            "PublicIp": nic.public_ip,
        }
    return {
        "Association": association,
        "Attachment": {
            "AttachTime": nic.attach_time,
            "AttachmentId": nic.attachment_id,
            "DeleteOnTermination": nic.delete_on_termination,
            "DeviceIndex": nic.device_index,
            "NetworkCardIndex": _NETWORK_CARD,
            "Status": "attached",
        },
        "Description": nic.description,
        "Groups": _groups(sorted(nic.group_set, key=lambda group: group.id)),
        "InterfaceType": nic.interface_type,
        "Ipv6Addresses": [],
        "MacAddress": nic.mac_address,
        "NetworkInterfaceId": nic.id,
        "OwnerId": nic.owner_id,
        "PrivateIpAddress": nic.private_ip_address,
        "PrivateIpAddresses": [
            {
                "Association": association,
                "Primary": True,
                "PrivateIpAddress": nic.private_ip_address,
            }
        ],
        "SourceDestCheck": nic.source_dest_check,
        "Status": "in-use",
        "SubnetId": nic.subnet.id,
        "VpcId": nic.subnet.vpc_id,
    }


def _groups(groups: Any) -> list[dict[str, str]]:
    return [{"GroupId": group.id, "GroupName": group.name} for group in groups]
