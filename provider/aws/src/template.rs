//! Launch templates: the settings that the instances of a generation share.

use aws_sdk_ec2::types::{
    CapacityReservationPreference, Filter, LaunchTemplate, LaunchTemplateBlockDeviceMappingRequest,
    LaunchTemplateCapacityReservationSpecificationRequest, LaunchTemplateEbsBlockDeviceRequest,
    LaunchTemplateHttpTokensState, LaunchTemplateIamInstanceProfileSpecificationRequest,
    LaunchTemplateInstanceMetadataOptionsRequest, LaunchTemplateInstanceMetadataTagsState,
    RequestLaunchTemplateData, ResourceType, ShutdownBehavior, ValidationWarning, VolumeType,
};
use base64::Engine as _;

use crate::tagging::{filter, tag_specification};
use crate::{AwsEc2, Ec2Error, TemplateRequest};

/// Logs what EC2 says against a launch template that it accepted, for example about a missing group.
fn warn_of(warning: Option<&ValidationWarning>, template: &str) {
    let told = warning.map(ValidationWarning::errors).unwrap_or_default();
    for one in told {
        let (code, message) = (one.code(), one.message());
        tracing::warn!(
            template,
            code,
            message,
            "EC2 accepted a launch template with a warning"
        );
    }
}

impl AwsEc2 {
    pub(crate) async fn create_launch_template(
        &self,
        request: &TemplateRequest,
    ) -> Result<(), Ec2Error> {
        let tags = tag_specification(ResourceType::LaunchTemplate, &request.tags);
        let answer = self
            .client
            .create_launch_template()
            .launch_template_name(&request.name)
            .launch_template_data(content(request))
            .tag_specifications(tags)
            .send()
            .await
            .map_err(|e| Ec2Error::of("CreateLaunchTemplate", &e));
        match answer {
            Err(error) if error.is_template_taken() => self.own_template(request, error).await,
            answer => {
                warn_of(answer?.warning(), &request.name);
                Ok(())
            }
        }
    }

    /// Checks that an existing template is from an earlier attempt. Another principal of the account
    /// may have made a template with this name, and with an image or user data of its own.
    async fn own_template(
        &self,
        request: &TemplateRequest,
        taken: Ec2Error,
    ) -> Result<(), Ec2Error> {
        let pool = request.tags.get(self.keys.pool_uid);
        let of_pool = self.of_pool(pool.map_or("", String::as_str));
        if self
            .templates(&request.name, Some(of_pool))
            .await?
            .is_empty()
        {
            return Err(taken.of_template(&request.name));
        }
        Ok(())
    }

    /// The launch templates of this control plane with a name.
    async fn templates(
        &self,
        name: &str,
        further: Option<Filter>,
    ) -> Result<Vec<LaunchTemplate>, Ec2Error> {
        let named = filter("launch-template-name", [name.to_owned()]);
        let filters = [self.ours(), named].into_iter().chain(further);
        let found = self
            .client
            .describe_launch_templates()
            .set_filters(Some(filters.collect()))
            .send()
            .await
            .map_err(|e| Ec2Error::of("DescribeLaunchTemplates", &e))?;
        Ok(found.launch_templates.unwrap_or_default())
    }

    pub(crate) async fn delete_launch_template(&self, name: &str) -> Result<(), Ec2Error> {
        let found = self.templates(name, None).await?;
        let ids = found.iter();
        for id in ids.filter_map(|template| template.launch_template_id()) {
            self.client
                .delete_launch_template()
                .launch_template_id(id)
                .send()
                .await
                .map_err(|e| Ec2Error::of("DeleteLaunchTemplate", &e))?;
        }
        Ok(())
    }
}

fn content(request: &TemplateRequest) -> RequestLaunchTemplateData {
    let profile = request.iam_instance_profile.as_deref().map(|name| {
        LaunchTemplateIamInstanceProfileSpecificationRequest::builder()
            .name(name)
            .build()
    });
    RequestLaunchTemplateData::builder()
        .image_id(&request.image.id)
        .set_user_data(request.user_data.as_deref().map(encode))
        .set_iam_instance_profile(profile)
        .set_security_group_ids(Some(request.group_ids.clone()))
        .metadata_options(metadata_options(request.shows_tags))
        .capacity_reservation_specification(no_reservation())
        // A spot instance of a one-time request cannot stop. An on-demand instance that its user
        // shuts down must not cost a disk any longer.
        .instance_initiated_shutdown_behavior(ShutdownBehavior::Terminate)
        .block_device_mappings(root_volume(request))
        .build()
}

/// Uses no capacity reservation. By default EC2 puts on-demand instances into every open reservation
/// of the account that fits, although another team made it for itself.
fn no_reservation() -> LaunchTemplateCapacityReservationSpecificationRequest {
    LaunchTemplateCapacityReservationSpecificationRequest::builder()
        .capacity_reservation_preference(CapacityReservationPreference::None)
        .build()
}

/// Allows `IMDSv2` only, and no access from behind a container's bridge.
fn metadata_options(shows_tags: bool) -> LaunchTemplateInstanceMetadataOptionsRequest {
    let tags = if shows_tags {
        LaunchTemplateInstanceMetadataTagsState::Enabled
    } else {
        LaunchTemplateInstanceMetadataTagsState::Disabled
    };
    LaunchTemplateInstanceMetadataOptionsRequest::builder()
        .http_tokens(LaunchTemplateHttpTokensState::Required)
        .http_put_response_hop_limit(1)
        .instance_metadata_tags(tags)
        .build()
}

fn root_volume(request: &TemplateRequest) -> LaunchTemplateBlockDeviceMappingRequest {
    LaunchTemplateBlockDeviceMappingRequest::builder()
        .device_name(&request.image.root_device)
        .ebs(
            LaunchTemplateEbsBlockDeviceRequest::builder()
                .volume_type(VolumeType::Gp3)
                .encrypted(true)
                .delete_on_termination(true)
                .set_volume_size(request.root_volume_size_gib)
                .set_kms_key_id(request.kms_key_id.clone())
                .build(),
        )
        .build()
}

fn encode(user_data: &str) -> String {
    base64::engine::general_purpose::STANDARD.encode(user_data)
}
