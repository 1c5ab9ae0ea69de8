//! The simulated EC2 behind the provider's port.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use memory_ec2::{Machine, SecurityGroup, error, refusal};
use provider_aws::{
    Answer, Ec2, Ec2Error, GroupRequest, Image, Known, LaunchRequest, SnapshotRequest, Subnet,
    Tags, TemplateRequest, VolumeRequest,
};
use provider_core::{
    Checks, Group, GroupRules, Instance, InstanceState, Launched, Volume, VolumeSnapshot,
};

use super::earth::{Earth, Shared};
use super::invariants;
use super::ours::{Instances as _, Tagged, is_of_cluster, is_ours};
use super::storage;
use crate::regions::TAG_KEYS;

/// EC2 behind the port, with every active fault.
pub struct SimulatedEc2 {
    pub earth: Shared,
    /// The account that the credentials belong to.
    pub account: &'static str,
}

impl SimulatedEc2 {
    async fn call<T, F>(&self, operation: &'static str, act: F) -> Result<T, Ec2Error>
    where
        T: Send,
        F: FnOnce(&mut Earth) -> Result<T, Ec2Error> + Send,
    {
        let answered = |earth: &mut Earth| {
            let outer = earth.enter(self.account);
            let answer = earth.answer(operation, act);
            earth.enter(outer);
            answer
        };
        self.earth.effect(operation, answered).await
    }

    async fn terminate_at_once(&self, ids: &[String]) -> Result<(), Ec2Error> {
        self.call("TerminateInstances", |earth| {
            let now = earth.now;
            if !earth.cloud.buckets.take_ends(ids.len(), now) {
                return Err(error("TerminateInstances", "RequestLimitExceeded"));
            }
            let (ends, answer) = earth.cloud.terminate(ids);
            for id in &ends {
                let tags = earth.cloud.machine(id).tags.clone();
                if !earth.may_change(&tags) {
                    earth.violate(format!("{id} is not the pool's to terminate"));
                }
                invariants::check_end(earth, id);
                earth.check_nobody_has(id);
                earth.cloud.end(id, "Client.UserInitiatedShutdown", now);
            }
            answer
        })
        .await
    }
}

/// The machines that a list or a filter by tag shows.
fn listed(earth: &Earth) -> impl Iterator<Item = &Machine> {
    let now = earth.now;
    let machines = earth.cloud.machines.iter();
    machines.filter(move |m| m.is_listed(now) && is_of_cluster(&m.tags))
}

/// The instances with these ids that a list shows.
fn by_id(earth: &Earth, ids: &[String]) -> Vec<Instance> {
    let named = listed(earth).filter(|m| ids.contains(&m.id));
    named.filter_map(|m| m.read(&TAG_KEYS, earth.now)).collect()
}

#[async_trait]
impl Ec2 for SimulatedEc2 {
    async fn instances(&self, known: &Known) -> Result<Vec<Arc<Instance>>, Ec2Error> {
        self.call("DescribeInstances", |earth| {
            earth.faults.check_zones()?;
            let (now, flicker) = (earth.now, earth.faults.flicker);
            let mut dice = earth.dice.clone();
            let shown = listed(earth)
                .filter(|_| flicker == 0 || !dice.percent(flicker))
                .filter_map(|m| m.read(&TAG_KEYS, now))
                .map(|instance| known.share(instance))
                .collect();
            earth.dice = dice;
            Ok(shown)
        })
        .await
    }

    async fn instances_by_id(&self, ids: &[String]) -> Result<Vec<Instance>, Ec2Error> {
        self.call("DescribeInstances", |earth| {
            earth.faults.check_zones()?;
            Ok(by_id(earth, ids))
        })
        .await
    }

    async fn instances_named(&self, ids: &[String]) -> Result<Vec<Instance>, Ec2Error> {
        self.call("DescribeInstances", |earth| {
            let machines = earth.cloud.machines.iter();
            let named = machines.filter(|m| ids.contains(&m.id));
            let zones = named.map(|m| m.offering.zone.as_str());
            earth.faults.check_named(zones)?;
            Ok(by_id(earth, ids))
        })
        .await
    }

    async fn states(&self, ids: &[String]) -> Result<BTreeMap<String, InstanceState>, Ec2Error> {
        self.call("DescribeInstances", |earth| {
            earth.faults.check_zones()?;
            let now = earth.now;
            let machines = earth.cloud.machines.iter();
            let named = machines.filter(|m| m.is_listed(now) && ids.contains(&m.id));
            Ok(named.map(|m| (m.id.clone(), m.state(now))).collect())
        })
        .await
    }

    async fn instances_of_launch(
        &self,
        pool_uid: &str,
        launch: u64,
    ) -> Result<Vec<Instance>, Ec2Error> {
        self.call("DescribeInstances", |earth| {
            earth.faults.check_zones()?;
            let read = listed(earth).filter_map(|m| m.read(&TAG_KEYS, earth.now));
            let of_launch = read.filter(|i| i.pool_uid == pool_uid && i.launch == launch);
            Ok(of_launch.collect())
        })
        .await
    }

    async fn account(&self) -> Result<String, Ec2Error> {
        self.call("GetCallerIdentity", |earth| Ok(earth.account.to_owned()))
            .await
    }

    async fn checks(&self) -> Result<Checks, Ec2Error> {
        self.call("DescribeInstanceStatus", |earth| {
            let machines = earth.cloud.machines.iter();
            let impaired = machines.clone().filter(|m| m.is_impaired);
            let scheduled = machines.filter_map(|m| Some((m.id.clone(), m.scheduled.clone()?)));
            Ok(Checks {
                impaired: impaired.map(|m| m.id.clone()).collect(),
                scheduled: scheduled.collect(),
            })
        })
        .await
    }

    async fn spot_prices(
        &self,
        types: &[String],
        _: Timestamp,
    ) -> Result<BTreeMap<(String, String), f64>, Ec2Error> {
        self.call("DescribeSpotPriceHistory", |earth| {
            let known = earth.spot_prices.iter();
            let asked = known.filter(|((name, _), _)| types.contains(name));
            Ok(asked.map(|(key, usd)| (key.clone(), *usd)).collect())
        })
        .await
    }

    async fn launch(&self, request: &LaunchRequest) -> Result<Answer, Ec2Error> {
        self.call("CreateFleet", |earth| {
            let tokens = earth.cloud.fleets.contains_key(&request.token);
            let faults = earth.faults.clone();
            faults.check_fleet(&request.places.iter().map(|p| p.zone.as_str()).collect())?;
            let sells = |offering: &_, missing| faults.grant(offering, missing);
            let born = earth.cloud.launch(request, sells, earth.now)?;
            invariants::check_births(earth, request, &born);
            earth.cloud.kill_born(&born, &faults, earth.now);
            let fleet = earth.cloud.fleets[&request.token].clone();
            if !tokens {
                let refused = fleet.refusals.iter().map(|(offering, _)| offering.clone());
                let granted = fleet.machines.iter();
                let granted = granted.map(|index| earth.cloud.machines[*index].offering.clone());
                let asked: Vec<_> = refused.chain(granted).collect();
                earth.asked.extend(asked);
            }
            let launched = fleet.machines.iter().map(|index| {
                let machine = &earth.cloud.machines[*index];
                Launched {
                    id: machine.id.clone(),
                    offering: machine.offering.clone(),
                }
            });
            let refusals = fleet.refusals.iter();
            let refusals = refusals.map(|(of, code)| (of.clone(), refusal(of, code)));
            Ok(Answer {
                launched: launched.collect(),
                refusals: refusals.collect(),
            })
        })
        .await
    }

    async fn create_template(&self, request: &TemplateRequest) -> Result<(), Ec2Error> {
        self.call("CreateLaunchTemplate", |earth| {
            invariants::check_template(earth, request);
            let templates = &mut earth.cloud.templates;
            let name = request.name.clone();
            let template = templates.entry(name).or_insert_with(|| request.clone());
            let owner = |tags: &Tags| tags.get(TAG_KEYS.pool_uid).cloned();
            let is_own =
                is_of_cluster(&template.tags) && owner(&template.tags) == owner(&request.tags);
            if is_own {
                return Ok(());
            }
            let code = "InvalidLaunchTemplateName.AlreadyExistsException";
            Err(error("CreateLaunchTemplate", code).of_template(&request.name))
        })
        .await
    }

    async fn delete_template(&self, name: &str) -> Result<(), Ec2Error> {
        self.call("DeleteLaunchTemplate", |earth| {
            let found = earth.cloud.templates.get(name);
            if found.is_some_and(|template| is_of_cluster(&template.tags)) {
                earth.cloud.templates.remove(name);
            }
            Ok(())
        })
        .await
    }

    async fn tag(&self, instance_id: &str, tags: &Tags) -> Result<(), Ec2Error> {
        self.call("CreateTags", |earth| {
            if let Some(disk) = earth.cloud.storage.find(instance_id) {
                let is_ours = disk.is_ours();
                disk.tags.extend(tags.clone());
                if !is_ours {
                    earth.violate(format!("{instance_id} is not the pool's to tag"));
                }
                return Ok(());
            }
            if let Some(lease) = tags.get(TAG_KEYS.lease) {
                earth.check_lease(instance_id, lease);
            }
            let machine = earth.cloud.machine(instance_id);
            let is_ours = is_ours(&machine.tags);
            machine.tags.extend(tags.clone());
            if !is_ours {
                earth.violate(format!("{instance_id} is not the pool's to tag"));
            }
            Ok(())
        })
        .await
    }

    async fn terminate(&self, instances: &[Instance]) -> BTreeMap<String, Ec2Error> {
        let ids: Vec<String> = instances.iter().map(|i| i.id.clone()).collect();
        // The batcher of provider-aws asks for no more at once than EC2 grants.
        let most = self.earth.lock().cloud.buckets.most_ends();
        let mut refused = BTreeMap::new();
        for ids in ids.chunks(most.unwrap_or(usize::MAX)) {
            let Err(error) = self.terminate_at_once(ids).await else {
                continue;
            };
            if ids.len() == 1 || !error.may_concern_some() {
                refused.extend(ids.iter().map(|id| (id.clone(), error.clone())));
                continue;
            }
            // The batcher asks for halves. The result is the same.
            for id in ids {
                let alone = self.terminate_at_once(std::slice::from_ref(id)).await;
                refused.extend(alone.err().map(|error| (id.clone(), error)));
            }
        }
        refused
    }

    async fn volumes(&self) -> Result<Vec<Volume>, Ec2Error> {
        self.call("DescribeVolumes", |earth| {
            let (flicker, mut dice) = (earth.faults.flicker, earth.dice.clone());
            let shown = storage::listed(earth).filter(|_| flicker == 0 || !dice.percent(flicker));
            let shown = shown.collect();
            earth.dice = dice;
            Ok(shown)
        })
        .await
    }

    async fn volumes_of(&self, pool_uid: &str) -> Result<Vec<Volume>, Ec2Error> {
        self.call("DescribeVolumes", |earth| {
            let of_pool = storage::listed(earth).filter(|v| v.pool_uid == pool_uid);
            Ok(of_pool.collect())
        })
        .await
    }

    async fn create_volume(&self, request: &VolumeRequest) -> Result<Volume, Ec2Error> {
        self.call("CreateVolume", |earth| storage::create(earth, request))
            .await
    }

    async fn attach_volume(&self, volume_id: &str, instance_id: &str) -> Result<(), Ec2Error> {
        let attach = |earth: &mut Earth| storage::attach(earth, volume_id, instance_id);
        self.call("AttachVolume", attach).await
    }

    async fn grow_volume(&self, volume_id: &str, size_gib: u32) -> Result<(), Ec2Error> {
        let grow = |earth: &mut Earth| storage::grow(earth, volume_id, size_gib);
        self.call("ModifyVolume", grow).await
    }

    async fn delete_volume(&self, volume_id: &str) -> Result<(), Ec2Error> {
        let delete = |earth: &mut Earth| storage::delete(earth, volume_id);
        self.call("DeleteVolume", delete).await
    }

    async fn snapshots_of(&self, pool_uid: &str) -> Result<Vec<VolumeSnapshot>, Ec2Error> {
        self.call("DescribeSnapshots", |earth| {
            let of_pool = storage::listed_copies(earth).filter(|s| s.pool_uid == pool_uid);
            Ok(of_pool.collect())
        })
        .await
    }

    async fn create_snapshot(&self, request: &SnapshotRequest) -> Result<VolumeSnapshot, Ec2Error> {
        self.call("CreateSnapshot", |earth| storage::copy(earth, request))
            .await
    }

    async fn delete_snapshot(&self, snapshot_id: &str) -> Result<(), Ec2Error> {
        let delete = |earth: &mut Earth| storage::delete_copy(earth, snapshot_id);
        self.call("DeleteSnapshot", delete).await
    }

    async fn groups(&self) -> Result<Vec<Group>, Ec2Error> {
        self.call("DescribeSecurityGroups", |earth| {
            let groups = earth.cloud.firewall.groups.iter();
            let listed = groups.filter(|g| g.listed_from <= earth.now && is_of_cluster(&g.tags));
            let read = |group: &SecurityGroup| group.read(&TAG_KEYS);
            Ok(listed.filter_map(read).collect())
        })
        .await
    }

    async fn create_group(&self, request: &GroupRequest) -> Result<String, Ec2Error> {
        self.call("CreateSecurityGroup", |earth| {
            let lag = earth.cloud.pace.lists_group;
            earth.cloud.firewall.create(request, earth.now, lag)
        })
        .await
    }

    async fn authorize(&self, group_id: &str, rules: &GroupRules) -> Result<(), Ec2Error> {
        self.call("AuthorizeSecurityGroupIngress", |earth| {
            invariants::check_group(earth, group_id);
            invariants::check_opening(earth, rules);
            earth.cloud.firewall.authorize(group_id, rules)
        })
        .await
    }

    async fn revoke(
        &self,
        group_id: &str,
        rules: &GroupRules,
        rule_ids: &BTreeSet<String>,
    ) -> Result<(), Ec2Error> {
        self.call("RevokeSecurityGroupIngress", |earth| {
            invariants::check_group(earth, group_id);
            earth.cloud.firewall.revoke(group_id, rules, rule_ids)
        })
        .await
    }

    async fn delete_group(&self, group_id: &str) -> Result<(), Ec2Error> {
        self.call("DeleteSecurityGroup", |earth| {
            invariants::check_group(earth, group_id);
            let now = earth.now;
            let uses = |m: &Machine| {
                m.state(now) != InstanceState::Terminated
                    && m.group_ids.iter().any(|id| id == group_id)
            };
            let is_used = earth.cloud.machines.iter().any(uses);
            earth.cloud.firewall.delete(group_id, is_used)
        })
        .await
    }

    async fn zones_by_type(
        &self,
        types: &[String],
    ) -> Result<BTreeMap<String, BTreeSet<String>>, Ec2Error> {
        self.call("DescribeInstanceTypeOfferings", |_| {
            let sold = [
                ("g4dn.xlarge", "us-east-1a"),
                ("g4dn.xlarge", "us-east-1b"),
                ("g5.xlarge", "us-east-1a"),
            ];
            let mut zones: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
            for (kind, zone) in sold
                .iter()
                .filter(|(kind, _)| types.iter().any(|t| t == kind))
            {
                let of_type = zones.entry((*kind).to_owned()).or_default();
                of_type.insert((*zone).to_owned());
            }
            Ok(zones)
        })
        .await
    }

    async fn console(&self, id: &str) -> Result<Vec<u8>, Ec2Error> {
        self.call("GetConsoleOutput", |earth| Ok(earth.cloud.console(id)))
            .await
    }

    async fn image(&self, id: &str) -> Result<Option<Image>, Ec2Error> {
        self.call("DescribeImages", |earth| Ok(earth.cloud.image(id)))
            .await
    }

    async fn subnets(&self, ids: Option<&[String]>) -> Result<Vec<Subnet>, Ec2Error> {
        self.call("DescribeSubnets", |earth| {
            let asked = |s: &&Subnet| ids.is_none_or(|ids| ids.contains(&s.id));
            let subnets = earth.cloud.subnets.iter();
            Ok(subnets.filter(asked).cloned().collect())
        })
        .await
    }
}
