//! The port, through aws-sdk-ec2.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use aws_sdk_ec2::Client;
use aws_sdk_ec2::types::{Filter, ResourceType, Tag, TagSpecification};
use provider_core::{Group, GroupRules, Instance};

use crate::{
    Answer, Ec2, Ec2Error, GroupRequest, Image, Known, LaunchRequest, Subnet, TagKeys, Tags,
    TemplateRequest,
};

/// EC2 through AWS's SDK.
#[derive(Clone, Debug)]
pub struct AwsEc2 {
    pub(crate) client: Client,
    pub(crate) keys: TagKeys,
    pub(crate) cluster: String,
}

impl AwsEc2 {
    pub(crate) fn new(client: Client, keys: TagKeys, cluster: String) -> Self {
        Self {
            client,
            keys,
            cluster,
        }
    }

    /// Selects what this control plane created.
    pub(crate) fn ours(&self) -> Filter {
        filter(
            &format!("tag:{}", self.keys.cluster),
            [self.cluster.clone()],
        )
    }
}

#[async_trait]
impl Ec2 for AwsEc2 {
    async fn instances(&self, known: &Known) -> Result<Vec<Arc<Instance>>, Ec2Error> {
        let share = |instance| known.share(instance);
        self.list_instances(vec![self.ours()], share).await
    }

    async fn instances_by_id(&self, ids: &[String]) -> Result<Vec<Instance>, Ec2Error> {
        // A filter by id leaves unknown ids out, where naming them as ids fails
        // the whole call.
        let by_id = filter("instance-id", ids.to_vec());
        let whole = |instance| instance;
        self.list_instances(vec![self.ours(), by_id], whole).await
    }

    async fn instances_of_launch(
        &self,
        pool_uid: &str,
        launch: u64,
    ) -> Result<Vec<Instance>, Ec2Error> {
        let tagged = |key: &str, value: String| filter(&format!("tag:{key}"), [value]);
        let of_pool = tagged(self.keys.pool_uid, pool_uid.to_owned());
        let of_launch = tagged(self.keys.launch, launch.to_string());
        let filters = vec![self.ours(), of_pool, of_launch];
        self.list_instances(filters, |instance| instance).await
    }

    async fn impaired(&self) -> Result<BTreeSet<String>, Ec2Error> {
        self.list_impaired().await
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

    async fn terminate(&self, ids: &[String]) -> Result<(), Ec2Error> {
        self.client
            .terminate_instances()
            .set_instance_ids(Some(ids.to_vec()))
            .send()
            .await
            .map_err(|e| Ec2Error::of("TerminateInstances", &e))?;
        Ok(())
    }

    async fn tag(&self, instance_id: &str, tags: &Tags) -> Result<(), Ec2Error> {
        let tags = tags
            .iter()
            .map(|(key, value)| Tag::builder().key(key).value(value).build());
        self.client
            .create_tags()
            .resources(instance_id)
            .set_tags(Some(tags.collect()))
            .send()
            .await
            .map_err(|e| Ec2Error::of("CreateTags", &e))?;
        Ok(())
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

    async fn image(&self, id: &str) -> Result<Option<Image>, Ec2Error> {
        self.find_image(id).await
    }

    async fn subnets(&self, ids: Option<&[String]>) -> Result<Vec<Subnet>, Ec2Error> {
        self.list_subnets(ids).await
    }
}

pub(crate) fn filter(name: &str, values: impl Into<Vec<String>>) -> Filter {
    Filter::builder()
        .name(name)
        .set_values(Some(values.into()))
        .build()
}

pub(crate) fn tag_specification(resource: ResourceType, tags: &Tags) -> TagSpecification {
    let tags = tags
        .iter()
        .map(|(key, value)| Tag::builder().key(key).value(value).build());
    TagSpecification::builder()
        .resource_type(resource)
        .set_tags(Some(tags.collect()))
        .build()
}

pub(crate) fn tag_value<'a>(tags: &'a [Tag], key: &str) -> Option<&'a str> {
    tags.iter()
        .find(|tag| tag.key() == Some(key))
        .and_then(Tag::value)
}
