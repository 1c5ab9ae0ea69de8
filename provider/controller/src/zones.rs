//! Describes of instances while a zone of the region is down. EC2 then fails two kinds of describes:
//! those that name no instance, and those that name an instance of this zone. EC2 answers all others
//! (`DescribeInstances` in the Amazon EC2 API Reference). Without this module one zone would blind the
//! whole region, just when its pools should move.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use provider_aws::{Ec2Error, Known};
use provider_core::{Instance, InstanceState};

use crate::region::{LOOK_LIFE, Region, Snapshot};

/// What EC2 told of the instances that were asked for.
#[derive(Debug)]
pub(crate) struct Described {
    /// Those that exist and carry this control plane's tag.
    pub(crate) found: Vec<Instance>,
    /// Those of which EC2 told nothing, with its error.
    pub(crate) unanswered: Option<(BTreeSet<String>, Ec2Error)>,
}

impl Described {
    /// The instances. It is an error if EC2 told nothing of some.
    pub(crate) fn all(self) -> Result<Vec<Instance>, Ec2Error> {
        match self.unanswered {
            None => Ok(self.found),
            Some((_, error)) => Err(error),
        }
    }
}

/// A list of all instances of this control plane.
#[derive(Debug)]
pub(crate) struct Listed {
    /// The instances. Those of a zone that is down are as the last list showed them.
    pub(crate) instances: Vec<Arc<Instance>>,
    /// Why EC2 did not list all instances at once; none if it did.
    pub(crate) lacking: Option<Lacking>,
}

/// A zone that is down keeps EC2 from a list of all instances.
#[derive(Debug)]
pub(crate) struct Lacking {
    /// EC2's error. The message has the zones.
    pub(crate) error: Ec2Error,
    /// The zones of which EC2 told nothing. Empty if no instance is in the zone that is down.
    pub(crate) zones: BTreeSet<String>,
}

impl Region {
    /// Describes instances anew. While a zone is down, EC2 is asked zone by zone, and an instance
    /// whose zone is unknown is asked for alone. It is an error if no zone answers.
    pub(crate) async fn describe(&self, ids: &[String]) -> Result<Described, Ec2Error> {
        match self.ec2.instances_by_id(ids).await {
            Err(error) if error.may_be_of_a_zone() => self.describe_by_zone(ids, error).await,
            answer => answer.map(|found| Described {
                found,
                unanswered: None,
            }),
        }
    }

    async fn describe_by_zone(
        &self,
        ids: &[String],
        error: Ec2Error,
    ) -> Result<Described, Ec2Error> {
        let mut found = Vec::new();
        let mut unanswered = BTreeSet::new();
        for ids in self.by_zone(ids) {
            match self.ec2.instances_named(&ids).await {
                Ok(more) => found.extend(more),
                Err(_) => unanswered.extend(ids),
            }
        }
        if unanswered.len() == ids.len() {
            return Err(error);
        }
        let unanswered = (!unanswered.is_empty()).then_some((unanswered, error));
        Ok(Described { found, unanswered })
    }

    /// Lists all instances. While a zone is down, the instances of the last list are asked for zone
    /// by zone. If no zone answers, this is an error for some minutes. After that, the instances count
    /// as they were: all of them may be in the zone that is down, and pools may grow in the others.
    pub(crate) async fn list(&self, now: Timestamp) -> Result<Listed, Ec2Error> {
        let before = self.last();
        let known = Known::new(before.instances.values().flatten().cloned());
        match self.ec2.instances(&known).await {
            Err(error) if error.may_be_of_a_zone() => {
                self.list_by_zone(&before, &known, error, now).await
            }
            answer => answer.map(|instances| Listed {
                instances,
                lacking: None,
            }),
        }
    }

    async fn list_by_zone(
        &self,
        before: &Snapshot,
        known: &Known,
        mut error: Ec2Error,
        now: Timestamp,
    ) -> Result<Listed, Ec2Error> {
        let may_pass = before.number == 0 || now.duration_since(before.at) < LOOK_LIFE;
        let before = || before.instances.values().flatten();
        // An instance that shuts down is asked for until it is terminated.
        let is_over = |i: &&Arc<Instance>| i.state == InstanceState::Terminated;
        let mut instances: Vec<_> = before().filter(is_over).cloned().collect();
        let over: BTreeSet<String> = instances.iter().map(|i| i.id.clone()).collect();
        let mut zones = BTreeSet::new();
        let mut answered = false;
        for (zone, ids) in self.ids_by_zone(before()) {
            let ids: Vec<String> = ids.difference(&over).cloned().collect();
            if ids.is_empty() {
                continue;
            }
            if let Ok(found) = self.ec2.instances_named(&ids).await {
                answered = true;
                instances.extend(found.into_iter().map(|i| known.share(i)));
            } else {
                instances.extend(before().filter(|i| ids.contains(&i.id)).cloned());
                zones.insert(zone);
            }
        }
        if !answered && may_pass {
            return Err(error);
        }
        if !zones.is_empty() {
            let named: Vec<&str> = zones.iter().map(String::as_str).collect();
            error.message = format!("no answer about {}; {}", named.join(", "), error.message);
        }
        Ok(Listed {
            instances,
            lacking: Some(Lacking { error, zones }),
        })
    }

    /// The ids of these instances and of those that were launched since, by zone.
    fn ids_by_zone<'a>(
        &self,
        listed: impl Iterator<Item = &'a Arc<Instance>>,
    ) -> BTreeMap<String, BTreeSet<String>> {
        let listed = listed.map(|i| (i.id.clone(), i.offering.zone.clone()));
        let mut zones: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (id, zone) in listed.chain(self.unlisted().zones()) {
            zones.entry(zone).or_default().insert(id);
        }
        zones
    }

    /// The ids by their zone. An id whose zone is unknown stands alone.
    fn by_zone(&self, ids: &[String]) -> Vec<Vec<String>> {
        let last = self.last();
        let known = self.ids_by_zone(last.instances.values().flatten());
        let mut left: BTreeSet<&String> = ids.iter().collect();
        let mut zones = Vec::new();
        for known in known.values() {
            let of_zone: Vec<String> = known.iter().filter(|id| left.remove(id)).cloned().collect();
            if !of_zone.is_empty() {
                zones.push(of_zone);
            }
        }
        zones.extend(left.into_iter().map(|id| vec![id.clone()]));
        zones
    }
}
