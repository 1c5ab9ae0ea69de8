//! Starting an instance.

use aws_sdk_ec2::types::{
    BlockDeviceMapping, EbsBlockDevice, HttpTokensState, IamInstanceProfileSpecification,
    InstanceInterruptionBehavior, InstanceMarketOptionsRequest, InstanceMetadataOptionsRequest,
    InstanceMetadataTagsState, InstanceType, MarketType, Placement, ResourceType, ShutdownBehavior,
    SpotInstanceType, SpotMarketOptions, VolumeType,
};
use base64::Engine as _;
use provider_core::{Instance, Market};

use crate::adapter::tag_specification;
use crate::{AwsEc2, Ec2Error, LaunchRequest, instances};

const OPERATION: &str = "RunInstances";

impl AwsEc2 {
    pub(crate) async fn run_instance(&self, request: &LaunchRequest) -> Result<Instance, Ec2Error> {
        let offering = &request.offering;
        let answer = self
            .client
            .run_instances()
            .client_token(&request.token)
            .min_count(1)
            .max_count(1)
            .image_id(&request.image.id)
            .instance_type(InstanceType::from(offering.instance_type.as_str()))
            .placement(
                Placement::builder()
                    .availability_zone(&offering.zone)
                    .build(),
            )
            .subnet_id(&request.subnet_id)
            .set_security_group_ids(Some(request.group_ids.clone()))
            .set_instance_market_options(market_options(offering.market))
            .set_user_data(request.user_data.as_deref().map(encode))
            .set_iam_instance_profile(request.iam_instance_profile.as_deref().map(|name| {
                IamInstanceProfileSpecification::builder()
                    .name(name)
                    .build()
            }))
            .metadata_options(metadata_options())
            // A spot instance of one request cannot stop, and an on-demand one
            // that its user shuts down must not go on costing a disk.
            .instance_initiated_shutdown_behavior(ShutdownBehavior::Terminate)
            .block_device_mappings(root_volume(request))
            .tag_specifications(tag_specification(ResourceType::Instance, &request.tags))
            .tag_specifications(tag_specification(ResourceType::Volume, &request.tags))
            .send()
            .await
            .map_err(|e| Ec2Error::of(OPERATION, &e))?;
        let instance = answer
            .instances()
            .first()
            .ok_or_else(|| Ec2Error::malformed(OPERATION, "instance"))?;
        instances::read(instance, &self.keys)
            .ok_or_else(|| Ec2Error::malformed(OPERATION, "instance with the tags asked for"))
    }
}

/// One-time requests that end with the instance: a persistent one would launch
/// again behind the provider's back. No maximum price: AWS advises against it,
/// the on-demand price bounds it.
fn market_options(market: Market) -> Option<InstanceMarketOptionsRequest> {
    let spot = SpotMarketOptions::builder()
        .spot_instance_type(SpotInstanceType::OneTime)
        .instance_interruption_behavior(InstanceInterruptionBehavior::Terminate)
        .build();
    (market == Market::Spot).then(|| {
        InstanceMarketOptionsRequest::builder()
            .market_type(MarketType::Spot)
            .spot_options(spot)
            .build()
    })
}

/// `IMDSv2` alone, and not from behind a container's bridge.
fn metadata_options() -> InstanceMetadataOptionsRequest {
    InstanceMetadataOptionsRequest::builder()
        .http_tokens(HttpTokensState::Required)
        .http_put_response_hop_limit(1)
        .instance_metadata_tags(InstanceMetadataTagsState::Disabled)
        .build()
}

fn root_volume(request: &LaunchRequest) -> BlockDeviceMapping {
    BlockDeviceMapping::builder()
        .device_name(&request.image.root_device)
        .ebs(
            EbsBlockDevice::builder()
                .volume_type(VolumeType::Gp3)
                .encrypted(true)
                .delete_on_termination(true)
                .set_volume_size(request.root_volume_size_gib)
                .build(),
        )
        .build()
}

fn encode(user_data: &str) -> String {
    base64::engine::general_purpose::STANDARD.encode(user_data)
}
