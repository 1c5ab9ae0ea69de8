//! `DescribeInstances`. The answer has every field that EC2 gives for an instance in a VPC, so that
//! the provider has as much to parse as with EC2.

use jiff::Timestamp;
use memory_ec2::{Cloud, Machine};
use provider_core::{InstanceState, Market};

use super::query::Query;
use super::xml::Xml;

/// The most instances in a page of EC2's answer.
const PAGE: usize = 1000;
const OWNER: &str = "123456789012";
/// The console of every instance, in base64: `gpu-workspace setup done`.
const CONSOLE: &str = "Z3B1LXdvcmtzcGFjZSBzZXR1cCBkb25lCg==";

/// One page of the instances that pass the filters.
pub(crate) fn describe(query: &Query, cloud: &Cloud, now: Timestamp) -> String {
    let filters = query.filters();
    let passes = |machine: &Machine| {
        filters
            .iter()
            .all(|filter| match filter.passes_tags(&machine.tags) {
                Some(passes) => passes,
                None => filter.name != "instance-id" || filter.values.contains(&machine.id),
            })
    };
    let size = query.number("MaxResults").unwrap_or(PAGE).min(PAGE);
    let from = query.number("NextToken").unwrap_or(0);
    let listed = cloud.machines.iter().enumerate().skip(from);
    let mut listed = listed.filter(|(_, m)| m.is_listed(now) && passes(m));
    let page: Vec<(usize, &Machine)> = listed.by_ref().take(size).collect();
    let next = listed.next().map(|(index, _)| index);
    Xml::answer("DescribeInstances", |xml| {
        xml.set("reservationSet", page, |xml, (index, machine)| {
            xml.value("reservationId", format_args!("r-{index:017x}"));
            xml.value("ownerId", OWNER);
            xml.set("instancesSet", [machine], |xml, machine| {
                instance(xml, index, machine, cloud, now);
            });
        });
        if let Some(next) = next {
            xml.value("nextToken", next);
        }
    })
}

/// The console of an instance, whose setup has ended.
pub(crate) fn console(query: &Query) -> String {
    Xml::answer("GetConsoleOutput", |xml| {
        xml.value("instanceId", query.text("InstanceId").unwrap_or_default());
        xml.value("output", CONSOLE);
    })
}

fn instance(xml: &mut Xml, index: usize, machine: &Machine, cloud: &Cloud, now: Timestamp) {
    let state = machine.state(now);
    let address = format!("10.0.{}.{}", index / 250 % 250, index % 250);
    let public = format!("203.0.{}.{}", index / 250 % 250, index % 250);
    let private_name = format!("ip-{}.ec2.internal", address.replace('.', "-"));
    let public_name = format!("ec2-{}.compute-1.amazonaws.com", public.replace('.', "-"));
    let is_up = state == InstanceState::Running;
    let offering = &machine.offering;
    let placed = |s: &&provider_aws::Subnet| s.zone == offering.zone;
    let (subnet, vpc) = cloud
        .subnets
        .iter()
        .find(placed)
        .map_or(("", ""), |s| (s.id.as_str(), s.vpc_id.as_str()));
    xml.value("instanceId", &machine.id);
    xml.value("imageId", &machine.image_id);
    xml.element("instanceState", |xml| {
        xml.value("code", code(state));
        xml.value("name", state.as_str());
    });
    xml.value("privateDnsName", &private_name);
    xml.value("dnsName", if is_up { &public_name } else { "" });
    xml.values(&[
        ("reason", ""),
        ("amiLaunchIndex", "0"),
        ("productCodes", ""),
    ]);
    xml.value("instanceType", &offering.instance_type);
    let born = Timestamp::from_second(machine.born.as_second()).unwrap_or(machine.born);
    xml.value("launchTime", born);
    xml.element("placement", |xml| {
        xml.value("availabilityZone", &offering.zone);
        xml.values(&[("groupName", ""), ("tenancy", "default")]);
    });
    xml.element("monitoring", |xml| xml.value("state", "disabled"));
    xml.values(&[("subnetId", subnet), ("vpcId", vpc)]);
    xml.value("privateIpAddress", &address);
    if is_up {
        xml.value("ipAddress", &public);
    }
    xml.value("sourceDestCheck", "true");
    groups(xml, &machine.group_ids);
    if let Some(end) = &machine.ended {
        xml.element("stateReason", |xml| {
            xml.values(&[("code", end.reason), ("message", end.reason)]);
        });
    }
    xml.values(&[
        ("architecture", "x86_64"),
        ("rootDeviceType", "ebs"),
        ("rootDeviceName", "/dev/sda1"),
    ]);
    xml.set("blockDeviceMapping", [index], |xml, index| {
        xml.value("deviceName", "/dev/sda1");
        xml.element("ebs", |xml| {
            xml.value("volumeId", format_args!("vol-{index:017x}"));
            xml.values(&[("status", "attached"), ("deleteOnTermination", "true")]);
            xml.value("attachTime", born);
        });
    });
    if offering.market == Market::Spot {
        xml.value("instanceLifecycle", "spot");
        xml.value("spotInstanceRequestId", format_args!("sir-{index:08x}"));
    }
    xml.value("virtualizationType", "hvm");
    xml.value("clientToken", format_args!("fleet-{index:08x}-0"));
    xml.tags(&machine.tags);
    xml.value("hypervisor", "xen");
    xml.set("networkInterfaceSet", [index], |xml, index| {
        xml.value("networkInterfaceId", format_args!("eni-{index:017x}"));
        xml.values(&[("subnetId", subnet), ("vpcId", vpc), ("description", "")]);
        xml.values(&[("ownerId", OWNER), ("status", "in-use")]);
        xml.value("macAddress", "02:00:00:00:00:01");
        xml.values(&[("privateIpAddress", &address), ("sourceDestCheck", "true")]);
        xml.value("privateDnsName", &private_name);
        groups(xml, &machine.group_ids);
        xml.element("attachment", |xml| {
            xml.value("attachmentId", format_args!("eni-attach-{index:017x}"));
            xml.values(&[("deviceIndex", "0"), ("status", "attached")]);
            xml.value("attachTime", born);
            xml.values(&[("deleteOnTermination", "true"), ("networkCardIndex", "0")]);
        });
        let association = |xml: &mut Xml| {
            xml.element("association", |xml| {
                xml.values(&[("publicIp", &public), ("publicDnsName", &public_name)]);
                xml.value("ipOwnerId", "amazon");
            });
        };
        association(xml);
        xml.set("privateIpAddressesSet", [()], |xml, ()| {
            xml.values(&[("privateIpAddress", &address), ("primary", "true")]);
            xml.value("privateDnsName", &private_name);
            association(xml);
        });
        xml.values(&[("ipv6AddressesSet", ""), ("interfaceType", "interface")]);
    });
    options(xml);
}

fn groups(xml: &mut Xml, ids: &[String]) {
    xml.set("groupSet", ids, |xml, id| {
        xml.value("groupId", id);
        xml.value("groupName", format_args!("gpu-spot-pool-{id}"));
    });
}

fn options(xml: &mut Xml) {
    xml.values(&[("ebsOptimized", "false"), ("enaSupport", "true")]);
    xml.element("cpuOptions", |xml| {
        xml.values(&[("coreCount", "2"), ("threadsPerCore", "2")]);
    });
    xml.element("capacityReservationSpecification", |xml| {
        xml.value("capacityReservationPreference", "open");
    });
    xml.element("hibernationOptions", |xml| xml.value("configured", "false"));
    xml.element("metadataOptions", |xml| {
        xml.values(&[
            ("state", "applied"),
            ("httpTokens", "required"),
            ("httpPutResponseHopLimit", "1"),
            ("httpEndpoint", "enabled"),
            ("httpProtocolIpv6", "disabled"),
            ("instanceMetadataTags", "disabled"),
        ]);
    });
    xml.element("enclaveOptions", |xml| xml.value("enabled", "false"));
    xml.values(&[
        ("bootMode", "uefi-preferred"),
        ("platformDetails", "Linux/UNIX"),
        ("usageOperation", "RunInstances"),
        ("currentInstanceBootMode", "legacy-bios"),
    ]);
    xml.element("maintenanceOptions", |xml| {
        xml.value("autoRecovery", "default");
    });
    xml.element("privateDnsNameOptions", |xml| {
        xml.values(&[
            ("hostnameType", "ip-name"),
            ("enableResourceNameDnsARecord", "false"),
            ("enableResourceNameDnsAAAARecord", "false"),
        ]);
    });
}

fn code(state: InstanceState) -> u8 {
    match state {
        InstanceState::Pending => 0,
        InstanceState::Running => 16,
        InstanceState::ShuttingDown => 32,
        InstanceState::Terminated => 48,
        InstanceState::Stopping => 64,
        InstanceState::Stopped => 80,
    }
}
