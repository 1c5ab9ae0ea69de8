//! Counts the calls to EC2, and keeps them below what EC2 grants.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use provider_aws::{
    Answer, Ec2, Ec2Error, GroupRequest, Image, Known, LaunchRequest, SnapshotRequest, Subnet,
    Tags, TemplateRequest, VolumeRequest,
};
use provider_core::{Checks, Group, GroupRules, Instance, InstanceState, Volume, VolumeSnapshot};
use provider_runtime::metrics::calls::Calls;

use crate::pace::Pace;

/// The result of a call that EC2 answered. A failed call counts under its error's class.
const SUCCESS: &str = "success";

/// Counts the operations of the port. All pages and the SDK's own repetitions of an operation count
/// as one. Operations that share a call count separately.
pub struct Counted {
    inner: Arc<dyn Ec2>,
    calls: Calls,
    pace: Pace,
}

impl Counted {
    /// Counts the calls of `inner`, and makes them at this pace.
    pub fn new(inner: Arc<dyn Ec2>, calls: Calls, pace: Pace) -> Self {
        Self { inner, calls, pace }
    }

    /// Makes a call in its turn, and counts it.
    async fn count<T>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T, Ec2Error>> + Send,
    ) -> Result<T, Ec2Error> {
        let in_turn = async {
            self.pace.turn(operation).await?;
            call.await
        };
        self.count_at_once(operation, in_turn).await
    }

    /// Makes and counts a call that waits for no turn.
    async fn count_at_once<T>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T, Ec2Error>> + Send,
    ) -> Result<T, Ec2Error> {
        let answer = call.await;
        let result = answer
            .as_ref()
            .map_or_else(|e| e.class.as_str(), |_| SUCCESS);
        self.calls.count(operation, result);
        answer
    }
}

#[async_trait]
impl Ec2 for Counted {
    async fn instances(&self, known: &Known) -> Result<Vec<Arc<Instance>>, Ec2Error> {
        let call = self.inner.instances(known);
        self.count("DescribeInstances", call).await
    }

    async fn instances_by_id(&self, ids: &[String]) -> Result<Vec<Instance>, Ec2Error> {
        let call = self.inner.instances_by_id(ids);
        self.count_at_once("DescribeInstances", call).await
    }

    async fn instances_named(&self, ids: &[String]) -> Result<Vec<Instance>, Ec2Error> {
        let call = self.inner.instances_named(ids);
        self.count_at_once("DescribeInstances", call).await
    }

    async fn states(&self, ids: &[String]) -> Result<BTreeMap<String, InstanceState>, Ec2Error> {
        let call = self.inner.states(ids);
        self.count("DescribeInstances", call).await
    }

    async fn instances_of_launch(
        &self,
        pool_uid: &str,
        launch: u64,
    ) -> Result<Vec<Instance>, Ec2Error> {
        let call = self.inner.instances_of_launch(pool_uid, launch);
        self.count("DescribeInstances", call).await
    }

    async fn account(&self) -> Result<String, Ec2Error> {
        let call = self.inner.account();
        let account = self.count_at_once("GetCallerIdentity", call).await?;
        self.pace.share(&account);
        Ok(account)
    }

    async fn checks(&self) -> Result<Checks, Ec2Error> {
        let call = self.inner.checks();
        self.count("DescribeInstanceStatus", call).await
    }

    async fn spot_prices(
        &self,
        types: &[String],
        now: Timestamp,
    ) -> Result<BTreeMap<(String, String), f64>, Ec2Error> {
        let call = self.inner.spot_prices(types, now);
        self.count("DescribeSpotPriceHistory", call).await
    }

    async fn launch(&self, request: &LaunchRequest) -> Result<Answer, Ec2Error> {
        let call = self.inner.launch(request);
        self.count("CreateFleet", call).await
    }

    async fn create_template(&self, request: &TemplateRequest) -> Result<(), Ec2Error> {
        let call = self.inner.create_template(request);
        self.count("CreateLaunchTemplate", call).await
    }

    async fn delete_template(&self, name: &str) -> Result<(), Ec2Error> {
        let call = self.inner.delete_template(name);
        self.count("DeleteLaunchTemplate", call).await
    }

    async fn tag(&self, id: &str, tags: &Tags) -> Result<(), Ec2Error> {
        let call = self.inner.tag(id, tags);
        self.count("CreateTags", call).await
    }

    async fn volumes(&self) -> Result<Vec<Volume>, Ec2Error> {
        let call = self.inner.volumes();
        self.count("DescribeVolumes", call).await
    }

    async fn volumes_of(&self, pool_uid: &str) -> Result<Vec<Volume>, Ec2Error> {
        let call = self.inner.volumes_of(pool_uid);
        self.count("DescribeVolumes", call).await
    }

    async fn create_volume(&self, request: &VolumeRequest) -> Result<Volume, Ec2Error> {
        let call = self.inner.create_volume(request);
        self.count("CreateVolume", call).await
    }

    async fn attach_volume(&self, volume_id: &str, instance_id: &str) -> Result<(), Ec2Error> {
        let call = self.inner.attach_volume(volume_id, instance_id);
        self.count("AttachVolume", call).await
    }

    async fn grow_volume(&self, volume_id: &str, size_gib: u32) -> Result<(), Ec2Error> {
        let call = self.inner.grow_volume(volume_id, size_gib);
        self.count("ModifyVolume", call).await
    }

    async fn delete_volume(&self, volume_id: &str) -> Result<(), Ec2Error> {
        let call = self.inner.delete_volume(volume_id);
        self.count("DeleteVolume", call).await
    }

    async fn snapshots_of(&self, pool_uid: &str) -> Result<Vec<VolumeSnapshot>, Ec2Error> {
        let call = self.inner.snapshots_of(pool_uid);
        self.count("DescribeSnapshots", call).await
    }

    async fn create_snapshot(&self, request: &SnapshotRequest) -> Result<VolumeSnapshot, Ec2Error> {
        let call = self.inner.create_snapshot(request);
        self.count("CreateSnapshot", call).await
    }

    async fn delete_snapshot(&self, snapshot_id: &str) -> Result<(), Ec2Error> {
        let call = self.inner.delete_snapshot(snapshot_id);
        self.count("DeleteSnapshot", call).await
    }

    async fn terminate(&self, instances: &[Instance]) -> BTreeMap<String, Ec2Error> {
        let refused = self.inner.terminate(instances).await;
        let result = refused
            .values()
            .next()
            .map_or(SUCCESS, |e| e.class.as_str());
        self.calls.count("TerminateInstances", result);
        refused
    }

    async fn groups(&self) -> Result<Vec<Group>, Ec2Error> {
        let call = self.inner.groups();
        self.count("DescribeSecurityGroups", call).await
    }

    async fn create_group(&self, request: &GroupRequest) -> Result<String, Ec2Error> {
        let call = self.inner.create_group(request);
        self.count("CreateSecurityGroup", call).await
    }

    async fn authorize(&self, group_id: &str, rules: &GroupRules) -> Result<(), Ec2Error> {
        let call = self.inner.authorize(group_id, rules);
        self.count("AuthorizeSecurityGroupIngress", call).await
    }

    async fn revoke(
        &self,
        group_id: &str,
        rules: &GroupRules,
        rule_ids: &BTreeSet<String>,
    ) -> Result<(), Ec2Error> {
        let call = self.inner.revoke(group_id, rules, rule_ids);
        self.count("RevokeSecurityGroupIngress", call).await
    }

    async fn delete_group(&self, group_id: &str) -> Result<(), Ec2Error> {
        let call = self.inner.delete_group(group_id);
        self.count("DeleteSecurityGroup", call).await
    }

    async fn zones_by_type(
        &self,
        types: &[String],
    ) -> Result<BTreeMap<String, BTreeSet<String>>, Ec2Error> {
        let call = self.inner.zones_by_type(types);
        self.count("DescribeInstanceTypeOfferings", call).await
    }

    async fn console(&self, id: &str) -> Result<Vec<u8>, Ec2Error> {
        let call = self.inner.console(id);
        self.count("GetConsoleOutput", call).await
    }

    async fn image(&self, id: &str) -> Result<Option<Image>, Ec2Error> {
        let call = self.inner.image(id);
        self.count("DescribeImages", call).await
    }

    async fn subnets(&self, ids: Option<&[String]>) -> Result<Vec<Subnet>, Ec2Error> {
        let call = self.inner.subnets(ids);
        self.count("DescribeSubnets", call).await
    }
}
