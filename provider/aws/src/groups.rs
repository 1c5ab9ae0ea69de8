//! Security groups of pools.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_ec2::types::{IpPermission, ResourceType, SecurityGroupRule};
use provider_core::{Group, GroupRules};

use crate::group_rules::{is_own, permissions, read};
use crate::tagging::{filter, tag_specification};
use crate::{AwsEc2, Ec2Error, GroupRequest};

/// The largest page that EC2 allows.
const PAGE: i32 = 1000;
/// The most values that EC2 allows in one filter.
const FILTER_VALUES: usize = 200;

impl AwsEc2 {
    pub(crate) async fn list_groups(&self) -> Result<Vec<Group>, Ec2Error> {
        let mut pages = self
            .client
            .describe_security_groups()
            .filters(self.ours())
            .into_paginator()
            .page_size(PAGE)
            .send();
        let mut listed = Vec::new();
        while let Some(page) = pages.next().await {
            let page = page.map_err(|e| Ec2Error::of("DescribeSecurityGroups", &e))?;
            listed.extend(page.security_groups.unwrap_or_default());
        }
        // The ids of rules are needed only for groups with rules to revoke.
        let widened = listed.iter().filter(|group| !is_own(group));
        let ids: Vec<String> = widened
            .filter_map(|g| g.group_id().map(Into::into))
            .collect();
        let rules = self.ingress_by_group(&ids).await?;
        let pool_uid = self.keys.pool_uid;
        Ok(listed
            .iter()
            .filter_map(|g| read(g, pool_uid, &rules))
            .collect())
    }

    async fn ingress_by_group(
        &self,
        ids: &[String],
    ) -> Result<BTreeMap<String, Vec<SecurityGroupRule>>, Ec2Error> {
        let mut by_group: BTreeMap<String, Vec<SecurityGroupRule>> = BTreeMap::new();
        for some in ids.chunks(FILTER_VALUES) {
            let mut pages = self
                .client
                .describe_security_group_rules()
                .filters(filter("group-id", some.to_vec()))
                .into_paginator()
                .page_size(PAGE)
                .send();
            while let Some(page) = pages.next().await {
                let page = page.map_err(|e| Ec2Error::of("DescribeSecurityGroupRules", &e))?;
                for rule in page.security_group_rules.unwrap_or_default() {
                    if let (Some(group), Some(false)) = (rule.group_id(), rule.is_egress()) {
                        by_group.entry(group.to_owned()).or_default().push(rule);
                    }
                }
            }
        }
        Ok(by_group)
    }

    pub(crate) async fn create_security_group(
        &self,
        request: &GroupRequest,
    ) -> Result<String, Ec2Error> {
        const OPERATION: &str = "CreateSecurityGroup";
        let answer = self
            .client
            .create_security_group()
            .group_name(&request.name)
            .description(&request.description)
            .vpc_id(&request.vpc_id)
            .tag_specifications(tag_specification(
                ResourceType::SecurityGroup,
                &request.tags,
            ))
            .send()
            .await
            .map_err(|e| Ec2Error::of(OPERATION, &e))?;
        answer
            .group_id
            .ok_or_else(|| Ec2Error::malformed(OPERATION, "group id"))
    }

    pub(crate) async fn authorize_ingress(
        &self,
        group_id: &str,
        rules: &GroupRules,
    ) -> Result<(), Ec2Error> {
        let permissions = permissions(group_id, rules);
        if permissions.is_empty() {
            return Ok(());
        }
        match self.authorize(group_id, permissions.clone()).await {
            Err(error) if error.is_duplicate() => {}
            answer => return answer,
        }
        // EC2 refuses the whole call if one of its rules exists already.
        for permission in permissions {
            match self.authorize(group_id, vec![permission]).await {
                Err(error) if !error.is_duplicate() => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    async fn authorize(
        &self,
        group_id: &str,
        permissions: Vec<IpPermission>,
    ) -> Result<(), Ec2Error> {
        self.client
            .authorize_security_group_ingress()
            .group_id(group_id)
            .set_ip_permissions(Some(permissions))
            .send()
            .await
            .map_err(|e| Ec2Error::of("AuthorizeSecurityGroupIngress", &e))?;
        Ok(())
    }

    pub(crate) async fn revoke_ingress(
        &self,
        group_id: &str,
        rules: &GroupRules,
        rule_ids: &BTreeSet<String>,
    ) -> Result<(), Ec2Error> {
        const OPERATION: &str = "RevokeSecurityGroupIngress";
        if !rule_ids.is_empty() {
            self.client
                .revoke_security_group_ingress()
                .group_id(group_id)
                .set_security_group_rule_ids(Some(rule_ids.iter().cloned().collect()))
                .send()
                .await
                .map_err(|e| Ec2Error::of(OPERATION, &e))?;
        }
        for permission in permissions(group_id, rules) {
            self.client
                .revoke_security_group_ingress()
                .group_id(group_id)
                .ip_permissions(permission)
                .send()
                .await
                .map_err(|e| Ec2Error::of(OPERATION, &e))?;
        }
        Ok(())
    }
}
