//! Snapshots of home volumes.

use aws_sdk_ec2::types::{self, ResourceType};
use provider_core::{SnapshotState, VolumeSnapshot};

use crate::connect::one_attempt;
use crate::tagging::{tag_specification, tag_value};
use crate::{AwsEc2, Ec2Error, SnapshotRequest, TagKeys};

/// The largest page that EC2 allows.
const PAGE: i32 = 1000;

impl AwsEc2 {
    pub(crate) async fn list_snapshots(
        &self,
        pool_uid: &str,
    ) -> Result<Vec<VolumeSnapshot>, Ec2Error> {
        let mut pages = self
            .client
            .describe_snapshots()
            // Without an owner, EC2 searches everybody's public snapshots.
            .owner_ids("self")
            .filters(self.ours())
            .filters(self.of_homes())
            .filters(self.of_pool(pool_uid))
            .into_paginator()
            .page_size(PAGE)
            .send();
        let mut found = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|e| Ec2Error::of("DescribeSnapshots", &e))?;
            found.extend(page.snapshots().iter().filter_map(|s| read(s, &self.keys)));
        }
        Ok(found)
    }

    pub(crate) async fn begin_snapshot(
        &self,
        request: &SnapshotRequest,
    ) -> Result<VolumeSnapshot, Ec2Error> {
        let answer = self
            .client
            .create_snapshot()
            .volume_id(&request.volume_id)
            .description(&request.description)
            .tag_specifications(tag_specification(ResourceType::Snapshot, &request.tags))
            .customize()
            // CreateSnapshot takes no token, so a repeated call would make a second snapshot.
            .config_override(one_attempt())
            .send()
            .await
            .map_err(|e| Ec2Error::of("CreateSnapshot", &e))?;
        let begun = types::Snapshot::builder()
            .set_snapshot_id(answer.snapshot_id)
            .volume_id(&request.volume_id)
            .state(answer.state.unwrap_or(types::SnapshotState::Pending))
            .set_tags(tag_specification(ResourceType::Snapshot, &request.tags).tags)
            .build();
        read(&begun, &self.keys).ok_or_else(|| Ec2Error::malformed("CreateSnapshot", "snapshot id"))
    }

    pub(crate) async fn remove_snapshot(&self, snapshot_id: &str) -> Result<(), Ec2Error> {
        self.client
            .delete_snapshot()
            .snapshot_id(snapshot_id)
            .send()
            .await
            .map_err(|e| Ec2Error::of("DeleteSnapshot", &e))?;
        Ok(())
    }
}

/// The snapshot, or `None` if it lacks the tags of a pool's home.
fn read(snapshot: &types::Snapshot, keys: &TagKeys) -> Option<VolumeSnapshot> {
    let tag = |key| tag_value(snapshot.tags(), key);
    Some(VolumeSnapshot {
        id: snapshot.snapshot_id()?.to_owned(),
        pool_uid: tag(keys.pool_uid)?.to_owned(),
        number: tag(keys.home)?.parse().ok()?,
        volume_id: snapshot.volume_id()?.to_owned(),
        state: match snapshot.state()? {
            types::SnapshotState::Completed => SnapshotState::Completed,
            types::SnapshotState::Error => SnapshotState::Error,
            // A snapshot in the archive, or one that is being restored from it, cannot be read yet.
            _ => SnapshotState::Pending,
        },
    })
}
