//! Starts instances by EC2 Fleet of type `instant`: one attempt, with instances and refusals in one
//! answer.

use aws_sdk_ec2::types::{
    CreateFleetError, CreateFleetInstance, DefaultTargetCapacityType,
    FleetLaunchTemplateConfigRequest, FleetLaunchTemplateOverrides,
    FleetLaunchTemplateOverridesRequest, FleetLaunchTemplateSpecificationRequest,
    FleetOnDemandAllocationStrategy, FleetType, InstanceType, OnDemandOptionsRequest, ResourceType,
    SpotAllocationStrategy, SpotInstanceInterruptionBehavior, SpotOptionsRequest,
    TargetCapacitySpecificationRequest,
};
use provider_core::{Launched, Market, Offering, Refusal, stable_message};

use crate::connect::one_attempt;
use crate::tagging::tag_specification;
use crate::{Answer, AwsEc2, Ec2Error, LaunchRequest};

const OPERATION: &str = "CreateFleet";

impl AwsEc2 {
    pub(crate) async fn create_fleet(&self, request: &LaunchRequest) -> Result<Answer, Ec2Error> {
        let answer = self
            .client
            .create_fleet()
            // The SDK generates a token for RunInstances, but not for CreateFleet.
            .client_token(&request.token)
            .r#type(FleetType::Instant)
            .target_capacity_specification(capacity(request))
            .set_spot_options((request.market == Market::Spot).then(spot_options))
            .set_on_demand_options((request.market == Market::OnDemand).then(on_demand_options))
            .launch_template_configs(
                FleetLaunchTemplateConfigRequest::builder()
                    .launch_template_specification(
                        FleetLaunchTemplateSpecificationRequest::builder()
                            .launch_template_name(&request.template)
                            .version("1")
                            .build(),
                    )
                    .set_overrides(Some(overrides(request)))
                    .build(),
            )
            .tag_specifications(tag_specification(ResourceType::Instance, &request.tags))
            .tag_specifications(tag_specification(ResourceType::Volume, &request.tags))
            .tag_specifications(tag_specification(ResourceType::Fleet, &request.tags))
            .customize()
            .config_override(one_attempt())
            .send()
            .await
            .map_err(|e| Ec2Error::of(OPERATION, &e))?;
        let launched = answer.instances().iter();
        let launched = launched.flat_map(|granted| read(granted, request));
        let refusals = answer.errors().iter();
        Ok(Answer {
            launched: launched.collect(),
            refusals: refusals.map(|error| refusal(error, request)).collect(),
        })
    }
}

fn capacity(request: &LaunchRequest) -> TargetCapacitySpecificationRequest {
    let market = match request.market {
        Market::Spot => DefaultTargetCapacityType::Spot,
        Market::OnDemand => DefaultTargetCapacityType::OnDemand,
    };
    TargetCapacitySpecificationRequest::builder()
        .total_target_capacity(i32::try_from(request.count).unwrap_or(i32::MAX))
        .default_target_capacity_type(market)
        .build()
}

/// There is no maximum price: AWS advises against it, and the on-demand price is the upper bound.
fn spot_options() -> SpotOptionsRequest {
    SpotOptionsRequest::builder()
        .allocation_strategy(SpotAllocationStrategy::PriceCapacityOptimized)
        .instance_interruption_behavior(SpotInstanceInterruptionBehavior::Terminate)
        .build()
}

fn on_demand_options() -> OnDemandOptionsRequest {
    OnDemandOptionsRequest::builder()
        .allocation_strategy(FleetOnDemandAllocationStrategy::Prioritized)
        .build()
}

/// The zone is set beside its subnet. EC2's errors repeat the override, so they name the zone then.
fn overrides(request: &LaunchRequest) -> Vec<FleetLaunchTemplateOverridesRequest> {
    let places = request.places.iter().zip(0_u32..);
    places
        .map(|(place, rank)| {
            let priority = (request.market == Market::OnDemand).then(|| f64::from(rank));
            FleetLaunchTemplateOverridesRequest::builder()
                .instance_type(InstanceType::from(place.instance_type.as_str()))
                .availability_zone(&place.zone)
                .subnet_id(&place.subnet_id)
                .set_priority(priority)
                .build()
        })
        .collect()
}

fn read(granted: &CreateFleetInstance, request: &LaunchRequest) -> Vec<Launched> {
    let overrides = granted.launch_template_and_overrides();
    let mut offering = offering(overrides.and_then(|o| o.overrides()), request);
    if let Some(kind) = granted.instance_type() {
        kind.as_str().clone_into(&mut offering.instance_type);
    }
    let ids = granted.instance_ids().iter();
    ids.map(|id| Launched {
        id: id.clone(),
        offering: offering.clone(),
    })
    .collect()
}

fn refusal(error: &CreateFleetError, request: &LaunchRequest) -> (Offering, Refusal) {
    let overrides = error.launch_template_and_overrides();
    let code = error.error_code().unwrap_or("Response");
    let refusal = Refusal::of(
        code,
        &stable_message(error.error_message().unwrap_or_default()),
    );
    (
        offering(overrides.and_then(|o| o.overrides()), request),
        refusal,
    )
}

/// The offering that an answer names. If it names none, the first offering of the request.
fn offering(named: Option<&FleetLaunchTemplateOverrides>, request: &LaunchRequest) -> Offering {
    let is_named = |place: &&crate::LaunchPlace| {
        named.is_some_and(|o| {
            o.instance_type()
                .is_some_and(|t| t.as_str() == place.instance_type)
                && (o.availability_zone() == Some(&place.zone)
                    || o.subnet_id() == Some(&place.subnet_id))
        })
    };
    let mut places = request.places.iter();
    let place = places.clone().find(is_named).or_else(|| places.next());
    Offering {
        instance_type: place.map(|p| p.instance_type.clone()).unwrap_or_default(),
        zone: place.map(|p| p.zone.clone()).unwrap_or_default(),
        market: request.market,
    }
}
