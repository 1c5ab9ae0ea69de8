//! Lists that hardly ever change (instance types by zone, images, subnets), and the list of
//! impaired instances.

use memory_ec2::Cloud;

use super::query::Query;
use super::xml::Xml;
use crate::account::ACCOUNT;

/// The account, as STS tells it.
pub(crate) fn identity() -> String {
    format!(
        "<GetCallerIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\
         <GetCallerIdentityResult><Account>{ACCOUNT}</Account></GetCallerIdentityResult>\
         </GetCallerIdentityResponse>"
    )
}

/// The impaired instances. The request's filter, which the provider always sets, selects them too.
pub(crate) fn impaired(cloud: &Cloud) -> String {
    let impaired = cloud.machines.iter().filter(|m| m.is_impaired);
    Xml::answer("DescribeInstanceStatus", |xml| {
        xml.set("instanceStatusSet", impaired, |xml, machine| {
            xml.value("instanceId", &machine.id);
        });
    })
}

/// No spot prices: the catalogue's count.
pub(crate) fn spot_prices() -> String {
    let none = std::iter::empty::<()>();
    Xml::answer("DescribeSpotPriceHistory", |xml| {
        xml.set("spotPriceHistorySet", none, |_, ()| {});
    })
}

/// Every requested instance type, in every zone.
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
    let ids = query.list("ImageId");
    let images = ids.iter().filter_map(|id| cloud.image(id));
    Xml::answer("DescribeImages", |xml| {
        xml.set("imagesSet", images, |xml, image| {
            xml.values(&[
                ("imageId", &image.id),
                ("rootDeviceName", &image.root_device),
            ]);
        });
    })
}

/// The requested subnets, or all of them. Each subnet is the default subnet of its zone.
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
