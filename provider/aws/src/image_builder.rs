//! The calls of a program that builds machine images: one machine, its console, and its image.

use aws_config::BehaviorVersion;
use aws_sdk_ec2::Client;
use aws_sdk_ec2::types::{
    BlockDeviceMapping, EbsBlockDevice, HttpTokensState, ImageState,
    InstanceMetadataOptionsRequest, InstanceType, Reservation, ResourceType, ShutdownBehavior,
    VolumeType,
};
use aws_types::region::Region;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::instances::console;
use crate::placement::image;
use crate::tagging::{filter, tag_specification};
use crate::{Ec2Error, Tags};

/// Builds images in one region, with the credentials and the endpoint of the environment.
#[derive(Clone, Debug)]
pub struct ImageBuilder {
    client: Client,
}

/// The machine from which an image is made.
#[derive(Clone, Debug)]
pub struct MachineRequest {
    /// The image that it starts from.
    pub image_id: String,
    /// The instance type.
    pub instance_type: String,
    /// The subnet; none for the default VPC's.
    pub subnet_id: Option<String>,
    /// The size of its root volume in GiB.
    pub root_gib: i32,
    /// cloud-init user data.
    pub user_data: String,
    /// The same token never starts a second machine.
    pub token: String,
    /// The tags of the machine and its volume.
    pub tags: Tags,
}

/// How far an image is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageProgress {
    /// EC2 copies the disk.
    Pending,
    /// Machines can start from it.
    Available,
    /// EC2 gave up. The text is EC2's reason.
    Failed(String),
}

impl ImageBuilder {
    /// A builder with the credentials and the endpoint that AWS's own tools would use.
    pub async fn from_environment(region: &str) -> Self {
        let config = aws_config::defaults(BehaviorVersion::latest())
            .region(Region::new(region.to_owned()))
            .load()
            .await;
        Self {
            client: Client::new(&config),
        }
    }

    /// Starts the machine and returns its id. A shutdown from inside terminates it.
    pub async fn launch(&self, request: &MachineRequest) -> Result<String, Ec2Error> {
        const OPERATION: &str = "RunInstances";
        let base = image(&self.client, &request.image_id).await?;
        let root = base.and_then(|image| image.root_device_name);
        let root = root.ok_or_else(|| Ec2Error::malformed("DescribeImages", "root device"))?;
        let disk = EbsBlockDevice::builder()
            .volume_size(request.root_gib)
            .volume_type(VolumeType::Gp3)
            .encrypted(true)
            .delete_on_termination(true)
            .build();
        let metadata = InstanceMetadataOptionsRequest::builder()
            .http_tokens(HttpTokensState::Required)
            .build();
        let answer = self
            .client
            .run_instances()
            .image_id(&request.image_id)
            .instance_type(InstanceType::from(request.instance_type.as_str()))
            .set_subnet_id(request.subnet_id.clone())
            .min_count(1)
            .max_count(1)
            .client_token(&request.token)
            .instance_initiated_shutdown_behavior(ShutdownBehavior::Terminate)
            .metadata_options(metadata)
            .block_device_mappings(
                BlockDeviceMapping::builder()
                    .device_name(root)
                    .ebs(disk)
                    .build(),
            )
            .user_data(STANDARD.encode(&request.user_data))
            .tag_specifications(tag_specification(ResourceType::Instance, &request.tags))
            .tag_specifications(tag_specification(ResourceType::Volume, &request.tags))
            .send()
            .await
            .map_err(|error| Ec2Error::of(OPERATION, &error))?;
        let launched = answer.instances().first();
        let id = launched.and_then(|instance| instance.instance_id());
        id.map(str::to_owned)
            .ok_or_else(|| Ec2Error::malformed(OPERATION, "instance id"))
    }

    /// The machines with this tag that are not terminated.
    pub async fn running(&self, key: &str, value: &str) -> Result<Vec<String>, Ec2Error> {
        let states = ["pending", "running", "stopping", "stopped"];
        let mut pages = self
            .client
            .describe_instances()
            .filters(filter(&format!("tag:{key}"), [value.to_owned()]))
            .filters(filter("instance-state-name", states.map(str::to_owned)))
            .into_paginator()
            .send();
        let mut ids = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|error| Ec2Error::of("DescribeInstances", &error))?;
            let all = page.reservations().iter().flat_map(Reservation::instances);
            ids.extend(all.filter_map(|one| one.instance_id().map(str::to_owned)));
        }
        Ok(ids)
    }

    /// What the machine wrote to its console.
    pub async fn console(&self, id: &str) -> Result<Vec<u8>, Ec2Error> {
        console(&self.client, id).await
    }

    /// Begins to make an image of the machine, which EC2 stops for it. Returns the image's id.
    pub async fn create_image(
        &self,
        id: &str,
        name: &str,
        description: &str,
        tags: &Tags,
    ) -> Result<String, Ec2Error> {
        const OPERATION: &str = "CreateImage";
        let answer = self
            .client
            .create_image()
            .instance_id(id)
            .name(name)
            .description(description)
            .tag_specifications(tag_specification(ResourceType::Image, tags))
            .tag_specifications(tag_specification(ResourceType::Snapshot, tags))
            .send()
            .await
            .map_err(|error| Ec2Error::of(OPERATION, &error))?;
        answer
            .image_id
            .ok_or_else(|| Ec2Error::malformed(OPERATION, "image id"))
    }

    /// How far an image is.
    pub async fn progress(&self, image_id: &str) -> Result<ImageProgress, Ec2Error> {
        let Some(image) = image(&self.client, image_id).await? else {
            return Ok(ImageProgress::Pending);
        };
        Ok(match image.state() {
            Some(ImageState::Available) => ImageProgress::Available,
            Some(ImageState::Pending | ImageState::Transient) | None => ImageProgress::Pending,
            Some(other) => {
                let reason = image.state_reason().and_then(|reason| reason.message());
                ImageProgress::Failed(reason.unwrap_or(other.as_str()).to_owned())
            }
        })
    }

    /// Terminates the machine.
    pub async fn terminate(&self, id: &str) -> Result<(), Ec2Error> {
        let call = self.client.terminate_instances().instance_ids(id).send();
        call.await
            .map_err(|error| Ec2Error::of("TerminateInstances", &error))?;
        Ok(())
    }
}
