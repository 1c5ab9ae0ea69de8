//! The port implemented with aws-sdk-ec2.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use aws_sdk_ec2::Client;
use aws_sdk_ec2::types::{self, Filter, Tag};
use futures::future::join_all;
use jiff::Timestamp;
use provider_core::{Checks, Group, GroupRules, Instance, InstanceState, Volume, VolumeSnapshot};

use crate::batcher::{Batcher, Urgency};
use crate::batches::{BY_ID, ById, TERMINATIONS, Terminations};
use crate::instances::{checks, console, list, named, read, states};
use crate::prices::spot_prices;
use crate::tagging::{filter, tag_value};
use crate::{
    Answer, Ec2, Ec2Error, GroupRequest, Image, Known, LaunchRequest, SnapshotRequest, Subnet,
    TagKeys, Tags, TemplateRequest, VolumeRequest,
};

/// EC2 through AWS's SDK.
#[derive(Clone, Debug)]
pub struct AwsEc2 {
    pub(crate) client: Client,
    sts: aws_sdk_sts::Client,
    pub(crate) keys: TagKeys,
    pub(crate) cluster: String,
    by_id: Arc<Batcher<ById>>,
    terminations: Arc<Batcher<Terminations>>,
}

impl AwsEc2 {
    /// Must be called within a tokio runtime: the batchers spawn tasks.
    pub(crate) fn new(
        client: Client,
        sts: aws_sdk_sts::Client,
        keys: TagKeys,
        cluster: String,
    ) -> Self {
        let by_id = ById {
            client: client.clone(),
            keys: keys.clone(),
            ours: ours(&keys, &cluster),
        };
        let terminations = Terminations {
            client: client.clone(),
        };
        Self {
            client,
            sts,
            keys,
            cluster,
            by_id: Arc::new(Batcher::new(by_id, BY_ID)),
            terminations: Arc::new(Batcher::new(terminations, TERMINATIONS)),
        }
    }

    /// Selects the resources that this control plane created.
    pub(crate) fn ours(&self) -> Filter {
        ours(&self.keys, &self.cluster)
    }

    /// Selects the resources of one pool.
    pub(crate) fn of_pool(&self, pool_uid: &str) -> Filter {
        let key = format!("tag:{}", self.keys.pool_uid);
        filter(&key, [pool_uid.to_owned()])
    }

    /// Selects home volumes and their snapshots. An instance's own disks carry the other tags too.
    pub(crate) fn of_homes(&self) -> Filter {
        filter("tag-key", [self.keys.home.to_owned()])
    }
}

#[async_trait]
impl Ec2 for AwsEc2 {
    async fn instances(&self, known: &Known) -> Result<Vec<Arc<Instance>>, Ec2Error> {
        let share = |instance| known.share(instance);
        list(&self.client, &self.keys, vec![self.ours()], share).await
    }

    async fn instances_by_id(&self, ids: &[String]) -> Result<Vec<Instance>, Ec2Error> {
        let mut found = Vec::clone(&*self.by_id.ask(ids).await?);
        found.retain(|instance| ids.contains(&instance.id));
        Ok(found)
    }

    async fn instances_named(&self, ids: &[String]) -> Result<Vec<Instance>, Ec2Error> {
        let tag = self.keys.cluster;
        let is_ours = |i: &types::Instance| tag_value(i.tags(), tag) == Some(&self.cluster);
        let read = |i: &types::Instance| read(i, &self.keys).filter(|_| is_ours(i));
        named(&self.client, ids, read).await
    }

    async fn states(&self, ids: &[String]) -> Result<BTreeMap<String, InstanceState>, Ec2Error> {
        states(&self.client, ids).await
    }

    async fn instances_of_launch(
        &self,
        pool_uid: &str,
        launch: u64,
    ) -> Result<Vec<Instance>, Ec2Error> {
        let of_launch = filter(&format!("tag:{}", self.keys.launch), [launch.to_string()]);
        let filters = vec![self.ours(), self.of_pool(pool_uid), of_launch];
        list(&self.client, &self.keys, filters, |instance| instance).await
    }

    async fn account(&self) -> Result<String, Ec2Error> {
        const OPERATION: &str = "GetCallerIdentity";
        let answer = self.sts.get_caller_identity().send().await;
        let answer = answer.map_err(|error| Ec2Error::of(OPERATION, &error))?;
        let account = answer.account.filter(|id| !id.is_empty());
        account.ok_or_else(|| Ec2Error::malformed(OPERATION, "account"))
    }

    async fn checks(&self) -> Result<Checks, Ec2Error> {
        checks(&self.client).await
    }

    async fn spot_prices(
        &self,
        types: &[String],
        now: Timestamp,
    ) -> Result<BTreeMap<(String, String), f64>, Ec2Error> {
        spot_prices(&self.client, types, now).await
    }

    async fn launch(&self, request: &LaunchRequest) -> Result<Answer, Ec2Error> {
        self.create_fleet(request).await
    }

    async fn create_template(&self, request: &TemplateRequest) -> Result<(), Ec2Error> {
        self.create_launch_template(request).await
    }

    async fn delete_template(&self, name: &str) -> Result<(), Ec2Error> {
        self.delete_launch_template(name).await
    }

    async fn terminate(&self, instances: &[Instance]) -> BTreeMap<String, Ec2Error> {
        let asked = instances.iter().map(|instance| async move {
            let ids = std::slice::from_ref(&instance.id);
            let urgency = Urgency::of(instance);
            let answer = self.terminations.ask_urgently(ids, urgency).await;
            answer.err().map(|error| (instance.id.clone(), error))
        });
        join_all(asked).await.into_iter().flatten().collect()
    }

    async fn tag(&self, id: &str, tags: &Tags) -> Result<(), Ec2Error> {
        let tags = tags
            .iter()
            .map(|(key, value)| Tag::builder().key(key).value(value).build());
        self.client
            .create_tags()
            .resources(id)
            .set_tags(Some(tags.collect()))
            .send()
            .await
            .map_err(|e| Ec2Error::of("CreateTags", &e))?;
        Ok(())
    }

    async fn volumes(&self) -> Result<Vec<Volume>, Ec2Error> {
        self.list_volumes(Vec::new()).await
    }

    async fn volumes_of(&self, pool_uid: &str) -> Result<Vec<Volume>, Ec2Error> {
        self.list_volumes(vec![self.of_pool(pool_uid)]).await
    }

    async fn create_volume(&self, request: &VolumeRequest) -> Result<Volume, Ec2Error> {
        self.make_volume(request).await
    }

    async fn attach_volume(&self, volume_id: &str, instance_id: &str) -> Result<(), Ec2Error> {
        self.attach_home(volume_id, instance_id).await
    }

    async fn grow_volume(&self, volume_id: &str, size_gib: u32) -> Result<(), Ec2Error> {
        self.resize_volume(volume_id, size_gib).await
    }

    async fn delete_volume(&self, volume_id: &str) -> Result<(), Ec2Error> {
        self.remove_volume(volume_id).await
    }

    async fn snapshots_of(&self, pool_uid: &str) -> Result<Vec<VolumeSnapshot>, Ec2Error> {
        self.list_snapshots(pool_uid).await
    }

    async fn create_snapshot(&self, request: &SnapshotRequest) -> Result<VolumeSnapshot, Ec2Error> {
        self.begin_snapshot(request).await
    }

    async fn delete_snapshot(&self, snapshot_id: &str) -> Result<(), Ec2Error> {
        self.remove_snapshot(snapshot_id).await
    }

    async fn groups(&self) -> Result<Vec<Group>, Ec2Error> {
        self.list_groups().await
    }

    async fn create_group(&self, request: &GroupRequest) -> Result<String, Ec2Error> {
        self.create_security_group(request).await
    }

    async fn authorize(&self, group_id: &str, rules: &GroupRules) -> Result<(), Ec2Error> {
        self.authorize_ingress(group_id, rules).await
    }

    async fn revoke(
        &self,
        group_id: &str,
        rules: &GroupRules,
        rule_ids: &BTreeSet<String>,
    ) -> Result<(), Ec2Error> {
        self.revoke_ingress(group_id, rules, rule_ids).await
    }

    async fn delete_group(&self, group_id: &str) -> Result<(), Ec2Error> {
        self.client
            .delete_security_group()
            .group_id(group_id)
            .send()
            .await
            .map_err(|e| Ec2Error::of("DeleteSecurityGroup", &e))?;
        Ok(())
    }

    async fn zones_by_type(
        &self,
        types: &[String],
    ) -> Result<BTreeMap<String, BTreeSet<String>>, Ec2Error> {
        self.list_offerings(types).await
    }

    async fn console(&self, id: &str) -> Result<Vec<u8>, Ec2Error> {
        console(&self.client, id).await
    }

    async fn image(&self, id: &str) -> Result<Option<Image>, Ec2Error> {
        self.find_image(id).await
    }

    async fn subnets(&self, ids: Option<&[String]>) -> Result<Vec<Subnet>, Ec2Error> {
        self.list_subnets(ids).await
    }
}

fn ours(keys: &TagKeys, cluster: &str) -> Filter {
    filter(&format!("tag:{}", keys.cluster), [cluster.to_owned()])
}
