//! The port, through aws-sdk-ec2.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use aws_sdk_ec2::Client;
use aws_sdk_ec2::types::{Filter, ResourceType, Tag, TagSpecification};
use provider_core::{Group, GroupRules, Instance};

use crate::{Ec2, Ec2Error, GroupRequest, Image, LaunchRequest, Subnet, TagKeys, Tags};

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
    async fn instances(&self) -> Result<Vec<Instance>, Ec2Error> {
        self.list_instances(vec![self.ours()]).await
    }

    async fn instances_by_id(&self, ids: &[String]) -> Result<Vec<Instance>, Ec2Error> {
        // A filter by id leaves unknown ids out, where naming them as ids fails
        // the whole call.
        let by_id = filter("instance-id", ids.to_vec());
        self.list_instances(vec![self.ours(), by_id]).await
    }

    async fn instance_by_token(&self, token: &str) -> Result<Option<Instance>, Ec2Error> {
        let by_token = filter("client-token", [token.to_owned()]);
        let mut found = self.list_instances(vec![self.ours(), by_token]).await?;
        Ok(found.pop())
    }

    async fn launch(&self, request: &LaunchRequest) -> Result<Instance, Ec2Error> {
        self.run_instance(request).await
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
