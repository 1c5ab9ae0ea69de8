//! The calls that the batcher combines: describes by id, and terminations.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_ec2::Client;
use aws_sdk_ec2::types::Filter;
use provider_core::Instance;

use crate::batcher::{Call, Limits};
use crate::bucket::Grant;
use crate::instances::{FILTER_VALUES, list};
use crate::tagging::filter;
use crate::{Ec2Error, TagKeys};

/// A third of the rate that EC2 grants permanently. The lists of regions and of missing instances
/// need their share too.
pub(crate) const BY_ID: Limits = Limits {
    ids: FILTER_VALUES,
    apart: Duration::from_millis(150),
    grant: None,
};
/// The whole rate that EC2 grants permanently. AWS recommends at most 1,000 instances in one
/// `TerminateInstances` call. Beyond 1,000 instances at once, EC2 ends 20 in a second.
pub(crate) const TERMINATIONS: Limits = Limits {
    ids: 500,
    apart: Duration::from_millis(200),
    grant: Some(Grant {
        at_once: 1000,
        each_second: 20,
    }),
};

/// `DescribeInstances` for some of the control plane's instances.
#[derive(Debug)]
pub(crate) struct ById {
    pub(crate) client: Client,
    pub(crate) keys: TagKeys,
    pub(crate) ours: Filter,
}

#[async_trait]
impl Call for ById {
    type Answer = Arc<Vec<Instance>>;

    async fn call(&self, ids: &[String]) -> Result<Self::Answer, Ec2Error> {
        let mut found = Vec::new();
        for ids in ids.chunks(FILTER_VALUES) {
            // A filter by id leaves unknown ids out. The parameter for ids would fail the whole
            // call for one unknown id.
            let filters = vec![self.ours.clone(), filter("instance-id", ids)];
            found.extend(list(&self.client, &self.keys, filters, |i| i).await?);
        }
        Ok(Arc::new(found))
    }
}

/// `TerminateInstances`.
#[derive(Debug)]
pub(crate) struct Terminations {
    pub(crate) client: Client,
}

#[async_trait]
impl Call for Terminations {
    type Answer = ();

    async fn call(&self, ids: &[String]) -> Result<(), Ec2Error> {
        self.client
            .terminate_instances()
            .set_instance_ids(Some(ids.to_vec()))
            .send()
            .await
            .map_err(|e| Ec2Error::of("TerminateInstances", &e))?;
        Ok(())
    }
}
