//! The data about a region that a launch needs: zones that offer a type, subnets, and images.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_ec2::Client;
use aws_sdk_ec2::types::{self, LocationType};

use crate::tagging::filter;
use crate::{AwsEc2, Ec2Error, Image, Subnet};

/// The image with this id; none if EC2 shows no such image, or does not show it yet. EC2 shows a
/// deprecated image only to those who name it: no filter finds it ("Deprecate an AMI" in the Amazon
/// EC2 User Guide). EC2 still launches instances from such an image.
pub(crate) async fn image(client: &Client, id: &str) -> Result<Option<types::Image>, Ec2Error> {
    let answer = client.describe_images().image_ids(id).send().await;
    let answer = match answer.map_err(|e| Ec2Error::of("DescribeImages", &e)) {
        Err(error) if error.code.starts_with("InvalidAMIID.") => return Ok(None),
        answer => answer?,
    };
    Ok(answer.images.unwrap_or_default().into_iter().next())
}

impl AwsEc2 {
    pub(crate) async fn list_offerings(
        &self,
        types: &[String],
    ) -> Result<BTreeMap<String, BTreeSet<String>>, Ec2Error> {
        let mut pages = self
            .client
            .describe_instance_type_offerings()
            .location_type(LocationType::AvailabilityZone)
            .filters(filter("instance-type", types.to_vec()))
            .into_paginator()
            .page_size(1000)
            .send();
        let mut zones: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|e| Ec2Error::of("DescribeInstanceTypeOfferings", &e))?;
            for offering in page.instance_type_offerings() {
                if let (Some(kind), Some(zone)) = (offering.instance_type(), offering.location()) {
                    let of_type = zones.entry(kind.as_str().to_owned()).or_default();
                    of_type.insert(zone.to_owned());
                }
            }
        }
        Ok(zones)
    }

    pub(crate) async fn find_image(&self, id: &str) -> Result<Option<Image>, Ec2Error> {
        let Some(found) = image(&self.client, id).await? else {
            return Ok(None);
        };
        let deprecated_at = found.deprecation_time.as_deref();
        Ok(found.root_device_name.map(|root_device| Image {
            id: id.to_owned(),
            root_device,
            deprecated_at: deprecated_at.and_then(|at| at.parse().ok()),
        }))
    }

    pub(crate) async fn list_subnets(
        &self,
        ids: Option<&[String]>,
    ) -> Result<Vec<Subnet>, Ec2Error> {
        let which = match ids {
            Some(ids) => filter("subnet-id", ids.to_vec()),
            None => filter("default-for-az", ["true".to_owned()]),
        };
        let mut pages = self
            .client
            .describe_subnets()
            .filters(which)
            .into_paginator()
            .page_size(1000)
            .send();
        let mut subnets = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|e| Ec2Error::of("DescribeSubnets", &e))?;
            subnets.extend(page.subnets().iter().filter_map(|s| {
                Some(Subnet {
                    id: s.subnet_id()?.to_owned(),
                    zone: s.availability_zone()?.to_owned(),
                    vpc_id: s.vpc_id()?.to_owned(),
                })
            }));
        }
        Ok(subnets)
    }
}
