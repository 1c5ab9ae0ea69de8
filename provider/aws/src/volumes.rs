//! Home volumes: lists of them, and changes to them.

use aws_sdk_ec2::types::{self, Filter, ResourceType, VolumeAttachmentState, VolumeType};
use provider_core::{Attachment, Volume, VolumeState};

use crate::connect::one_attempt;
use crate::tagging::{tag_specification, tag_value};
use crate::{AwsEc2, Ec2Error, TagKeys, VolumeRequest};

/// The device name of the home. EC2 makes udev create a link with this name, whatever name the
/// kernel gives the disk.
const DEVICE: &str = "/dev/sdf";
/// The largest page that EC2 allows.
const PAGE: i32 = 500;

impl AwsEc2 {
    pub(crate) async fn list_volumes(&self, filters: Vec<Filter>) -> Result<Vec<Volume>, Ec2Error> {
        let mut pages = self
            .client
            .describe_volumes()
            .set_filters(Some([vec![self.ours(), self.of_homes()], filters].concat()))
            .into_paginator()
            .page_size(PAGE)
            .send();
        let mut found = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|e| Ec2Error::of("DescribeVolumes", &e))?;
            found.extend(page.volumes().iter().filter_map(|v| read(v, &self.keys)));
        }
        Ok(found)
    }

    pub(crate) async fn make_volume(&self, request: &VolumeRequest) -> Result<Volume, Ec2Error> {
        let answer = self
            .client
            .create_volume()
            .client_token(&request.token)
            .availability_zone(&request.zone)
            .size(i32::try_from(request.size_gib).unwrap_or(i32::MAX))
            .volume_type(VolumeType::Gp3)
            .encrypted(true)
            .set_kms_key_id(request.kms_key_id.clone())
            .set_snapshot_id(request.snapshot_id.clone())
            .tag_specifications(tag_specification(ResourceType::Volume, &request.tags))
            .customize()
            .config_override(one_attempt())
            .send()
            .await
            .map_err(|e| Ec2Error::of("CreateVolume", &e))?;
        // The answer to a creation has no attachment. The other missing fields are known from the
        // request.
        let made = types::Volume::builder()
            .set_volume_id(answer.volume_id)
            .availability_zone(&request.zone)
            .set_size(answer.size.or(i32::try_from(request.size_gib).ok()))
            .state(answer.state.unwrap_or(types::VolumeState::Creating))
            .set_tags(tag_specification(ResourceType::Volume, &request.tags).tags)
            .build();
        read(&made, &self.keys).ok_or_else(|| Ec2Error::malformed("CreateVolume", "volume id"))
    }

    pub(crate) async fn attach_home(
        &self,
        volume_id: &str,
        instance_id: &str,
    ) -> Result<(), Ec2Error> {
        self.client
            .attach_volume()
            .volume_id(volume_id)
            .instance_id(instance_id)
            .device(DEVICE)
            .send()
            .await
            .map_err(|e| Ec2Error::of("AttachVolume", &e))?;
        Ok(())
    }

    pub(crate) async fn resize_volume(
        &self,
        volume_id: &str,
        size_gib: u32,
    ) -> Result<(), Ec2Error> {
        self.client
            .modify_volume()
            .volume_id(volume_id)
            .size(i32::try_from(size_gib).unwrap_or(i32::MAX))
            .send()
            .await
            .map_err(|e| Ec2Error::of("ModifyVolume", &e))?;
        Ok(())
    }

    pub(crate) async fn remove_volume(&self, volume_id: &str) -> Result<(), Ec2Error> {
        self.client
            .delete_volume()
            .volume_id(volume_id)
            .send()
            .await
            .map_err(|e| Ec2Error::of("DeleteVolume", &e))?;
        Ok(())
    }
}

/// The volume, or `None` if it lacks the tags of a pool's home. It is not the provider's then,
/// whatever else it carries.
fn read(volume: &types::Volume, keys: &TagKeys) -> Option<Volume> {
    let tag = |key| tag_value(volume.tags(), key);
    let attached = volume.attachments().iter();
    let mut attached = attached.filter(|a| a.state() != Some(&VolumeAttachmentState::Detached));
    Some(Volume {
        id: volume.volume_id()?.to_owned(),
        pool_uid: tag(keys.pool_uid)?.to_owned(),
        number: tag(keys.home)?.parse().ok()?,
        copy_of: tag(keys.home_copy_of).map(Into::into),
        zone: volume.availability_zone()?.to_owned(),
        state: VolumeState::parse(volume.state()?.as_str())?,
        size_gib: u32::try_from(volume.size()?).ok()?,
        attachment: attached.next().map(|a| Attachment {
            instance_id: a.instance_id().unwrap_or_default().to_owned(),
            is_attached: a.state() == Some(&VolumeAttachmentState::Attached),
        }),
        is_kept: tag(keys.home_kept).is_some(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instances::tests::KEYS;
    use aws_sdk_ec2::types::{Tag, VolumeAttachment};

    fn listed(tags: &[(&str, &str)]) -> types::Volume {
        let tags = tags
            .iter()
            .map(|(k, v)| Tag::builder().key(*k).value(*v).build());
        types::Volume::builder()
            .volume_id("vol-1")
            .availability_zone("us-east-1a")
            .size(10)
            .state(types::VolumeState::InUse)
            .set_tags(Some(tags.collect()))
            .build()
    }

    fn attached(state: VolumeAttachmentState) -> types::Volume {
        let mut volume = listed(&[("pool", "uid"), ("home", "3")]);
        volume.attachments = Some(vec![
            VolumeAttachment::builder()
                .instance_id("i-1")
                .state(state)
                .build(),
        ]);
        volume
    }

    #[test]
    fn a_home_is_read_with_its_attachment() {
        let home = read(&attached(VolumeAttachmentState::Attached), &KEYS).unwrap();
        assert_eq!((home.number, home.size_gib), (3, 10));
        assert!(home.attachment.unwrap().is_attached);
        let home = read(&attached(VolumeAttachmentState::Detaching), &KEYS).unwrap();
        assert!(
            !home.attachment.unwrap().is_attached,
            "it is on its way out"
        );
        let home = read(&attached(VolumeAttachmentState::Detached), &KEYS).unwrap();
        assert_eq!(home.attachment, None);
    }

    #[test]
    fn a_disk_of_an_instance_is_no_home_although_it_has_the_pools_tags() {
        let disk = [("pool", "uid"), ("launch", "7"), ("cluster", "here")];
        for tags in [
            &disk[..],
            &[("home", "1")],
            &[("pool", "uid"), ("home", "")],
        ] {
            assert_eq!(read(&listed(tags), &KEYS), None, "{tags:?}");
        }
    }
}
