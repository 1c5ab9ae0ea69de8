//! What hardly changes: types by zone, images, subnets. And who is impaired.

use memory_ec2::Cloud;

use super::query::Query;
use super::xml::Xml;

/// With a filter that only the impaired pass.
pub(crate) fn impaired(cloud: &Cloud) -> String {
    let impaired = cloud.machines.iter().filter(|m| m.is_impaired);
    Xml::answer("DescribeInstanceStatus", |xml| {
        xml.set("instanceStatusSet", impaired, |xml, machine| {
            xml.value("instanceId", &machine.id);
        });
    })
}

/// Every type in every zone.
pub(crate) fn offerings(query: &Query, cloud: &Cloud) -> String {
    let filters = query.filters();
    let types = filters.iter().filter(|f| f.name == "instance-type");
    let types = types.flat_map(|f| &f.values);
    let zones = || cloud.subnets.iter().map(|s| &s.zone);
    let sold = types.flat_map(|kind| zones().map(move |zone| (kind, zone)));
    Xml::answer("DescribeInstanceTypeOfferings", |xml| {
        xml.set("instanceTypeOfferingSet", sold, |xml, (kind, zone)| {
            xml.values(&[
                ("instanceType", kind),
                ("locationType", "availability-zone"),
                ("location", zone),
            ]);
        });
    })
}

pub(crate) fn images(query: &Query, cloud: &Cloud) -> String {
    let filters = query.filters();
    let ids = filters.iter().flat_map(|f| &f.values);
    let images = ids.filter_map(|id| cloud.image(id));
    Xml::answer("DescribeImages", |xml| {
        xml.set("imagesSet", images, |xml, image| {
            xml.values(&[
                ("imageId", &image.id),
                ("rootDeviceName", &image.root_device),
            ]);
        });
    })
}

/// All of them are the default ones of their zones.
pub(crate) fn subnets(query: &Query, cloud: &Cloud) -> String {
    let filters = query.filters();
    let named = filters.iter().find(|f| f.name == "subnet-id");
    let subnets = cloud.subnets.iter();
    let subnets = subnets.filter(|s| named.is_none_or(|f| f.values.contains(&s.id)));
    Xml::answer("DescribeSubnets", |xml| {
        xml.set("subnetSet", subnets, |xml, subnet| {
            xml.values(&[
                ("subnetId", &subnet.id),
                ("vpcId", &subnet.vpc_id),
                ("availabilityZone", &subnet.zone),
                ("defaultForAz", "true"),
            ]);
        });
    })
}
