//! Spot prices.

use std::collections::BTreeMap;

use aws_sdk_ec2::Client;
use aws_sdk_ec2::primitives::DateTime;
use aws_sdk_ec2::types::InstanceType;
use jiff::Timestamp;

use crate::Ec2Error;

const OPERATION: &str = "DescribeSpotPriceHistory";
/// The operating system whose prices count. GPU images of workspaces are Linux.
const PRODUCT: &str = "Linux/UNIX";

/// The spot prices of these types that are valid at `now`, in US dollars per hour, by instance type
/// and zone. With equal start and end, EC2 returns the newest price before that time. Source:
/// `DescribeSpotPriceHistory` in the Amazon EC2 API Reference.
pub(crate) async fn spot_prices(
    client: &Client,
    types: &[String],
    now: Timestamp,
) -> Result<BTreeMap<(String, String), f64>, Ec2Error> {
    let at = DateTime::from_secs(now.as_second());
    let types = types.iter().map(|name| InstanceType::from(name.as_str()));
    let mut pages = client
        .describe_spot_price_history()
        .set_instance_types(Some(types.collect()))
        .product_descriptions(PRODUCT)
        .start_time(at)
        .end_time(at)
        .into_paginator()
        .send();
    let mut prices = BTreeMap::new();
    while let Some(page) = pages.next().await {
        let page = page.map_err(|error| Ec2Error::of(OPERATION, &error))?;
        for price in page.spot_price_history() {
            let name = price.instance_type().map(InstanceType::as_str);
            let usd = price.spot_price().and_then(|usd| usd.parse().ok());
            if let (Some(name), Some(zone), Some(usd)) = (name, price.availability_zone(), usd) {
                prices
                    .entry((name.to_owned(), zone.to_owned()))
                    .or_insert(usd);
            }
        }
    }
    Ok(prices)
}
