//! A small in-memory EC2 for the planner's tests. It carries out the actions of a plan at once, and
//! advances the states of instances when a test asks it to.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use provider_core::{
    Action, Desired, Disruption, Group, GroupRules, Instance, InstanceState, Launch, Launched,
    Lease, Market, Notice, NoticeKind, Observed, Offering, Plan, Replace, SecurityGroups, Size,
    Spread, TypePreference, Wait, plan,
};

use super::homes;

pub const NOW: Timestamp = Timestamp::UNIX_EPOCH;
const VPC: &str = "vpc-1";
const POOL: &str = "pool-uid";
/// The digest of every lease.
pub const DIGEST: &str = "digest";

pub struct World {
    pub observed: Observed,
    pub now: Timestamp,
}

impl Default for World {
    fn default() -> Self {
        let observed = Observed {
            groups: vec![group("sg-1", rules())],
            ..Observed::default()
        };
        Self { observed, now: NOW }
    }
}

pub fn offerings() -> Vec<Offering> {
    let markets = [Market::Spot, Market::Spot, Market::OnDemand];
    let zones = ["us-east-1a", "us-east-1b", "us-east-1a"];
    markets
        .into_iter()
        .zip(zones)
        .map(|(market, zone)| Offering {
            instance_type: "g4dn.xlarge".into(),
            zone: zone.into(),
            market,
        })
        .collect()
}

pub fn desired(maximum: u32) -> Desired {
    Desired {
        pool_uid: POOL.into(),
        deleted: false,
        size: Size {
            minimum: maximum,
            maximum,
            idle: 0,
        },
        template: "template".into(),
        image_id: Some("ami-1".into()),
        offerings: offerings(),
        preference: TypePreference::Ordered,
        spread: Spread::default(),
        fallback_after: SignedDuration::ZERO,
        replace: Replace::default(),
        groups: SecurityGroups::Owned {
            vpc_id: VPC.into(),
            rules: rules(),
        },
        leases: Vec::new(),
        force: false,
        authorized_keys: None,
        home: None,
        ends_at: None,
    }
}

/// The generation of the instances that [`desired`] launches in the world's group.
pub fn generation() -> String {
    desired(0).generation(&["sg-1".to_owned()])
}

pub fn instance(id: &str, launch: u64, state: InstanceState) -> Instance {
    Instance {
        id: id.into(),
        pool_uid: POOL.into(),
        launch,
        generation: Some(generation()),
        lease: None,
        lease_digest: None,
        authorized_keys: BTreeMap::new(),
        activity: None,
        setup: None,
        host_key: None,
        offering: offerings().swap_remove(0),
        image_id: "ami-1".into(),
        state,
        state_reason: None,
        state_message: None,
        public_ip: None,
        private_ip: None,
        launched_at: Some(NOW),
    }
}

pub fn launch(number: u64, instance_id: Option<&str>) -> Launch {
    let offering = offerings().swap_remove(0);
    Launch {
        launch: number,
        count: 1,
        generation: generation(),
        offerings: offerings().drain(..2).collect(),
        decided_at: NOW,
        failures: 0,
        answer: instance_id.map(|id| {
            vec![Launched {
                id: id.into(),
                offering,
            }]
        }),
    }
}

pub fn lease(uid: &str, is_over: bool) -> Lease {
    Lease {
        uid: uid.into(),
        name: uid.into(),
        is_over,
        digest: DIGEST.into(),
    }
}

pub fn notice(kind: NoticeKind) -> Notice {
    Notice { kind, at: NOW }
}

impl World {
    /// Carries out a plan as EC2 does.
    pub fn apply(&mut self, plan: &provider_core::Plan) {
        assert!(
            plan.actions.is_sorted_by_key(Action::phase),
            "what is planned is what happens: {plan:?}"
        );
        for action in &plan.actions {
            self.act(action);
        }
        self.observed.settle();
    }

    /// Completes what EC2 has begun: pending instances run, shutting-down ones are terminated, and
    /// AWS reclaims the instances of its interruption notices.
    pub fn settle_states(&mut self) {
        let notices = self.observed.notices.clone();
        for instance in &mut self.observed.instances {
            let notice = notices.get(&instance.id).map(|notice| notice.kind);
            instance.state = match instance.state {
                state if state.is_live() && notice == Some(NoticeKind::Interruption) => {
                    InstanceState::Terminated
                }
                InstanceState::Pending => InstanceState::Running,
                InstanceState::ShuttingDown => InstanceState::Terminated,
                state => state,
            };
        }
        self.observed.settle();
    }

    /// Plans and acts until nothing is left to do, within a bound. Returns the last plan.
    pub fn run_to_rest(&mut self, desired: &Desired) -> Plan {
        // At this time every instance is old enough to be replaced for its age.
        let grown = NOW.saturating_add(SignedDuration::from_mins(20)).unwrap();
        for _ in 0..12 {
            let next = plan(desired, &self.observed, self.now);
            self.check(desired, &next);
            self.apply(&next);
            let again = plan(desired, &self.observed, self.now);
            let goes_on = |action: &Action| {
                matches!(
                    action,
                    Action::CreateGroup { .. }
                        | Action::DeleteGroup { .. }
                        | Action::DeleteTemplate { .. }
                )
            };
            // The next replacement may begin as soon as another one is over.
            let has_replaced = next.actions.iter().any(is_replacement);
            assert!(
                again.actions.iter().all(goes_on)
                    || next.actions.iter().any(goes_on)
                    || has_replaced,
                "acting left work: {next:?} then {again:?} in {:?}",
                self.observed
            );
            let before = self.observed.instances.clone();
            self.settle_states();
            let is_still = self.observed.instances == before && self.observed.launches.is_empty();
            if next.actions.is_empty() && is_still && self.now > grown {
                break;
            }
            // This is longer than every limit for EC2's eventual consistency.
            self.now = self
                .now
                .saturating_add(SignedDuration::from_mins(6))
                .unwrap();
        }
        let rest = plan(desired, &self.observed, self.now);
        assert_eq!(rest.actions, [], "never rests: {:?}", self.observed);
        let live = self.live();
        let stays = |wait: &Wait| matches!(wait, Wait::Leases { .. });
        if desired.deleted {
            let held = rest.waits.iter().any(stays);
            assert_eq!(rest.is_released(), !held);
            assert_eq!(live == 0, !held, "{rest:?}");
        } else {
            let leased = self.observed.bindings.len();
            let target = usize::try_from(rest.target).unwrap();
            assert_eq!(live, target.max(leased), "{rest:?} of {:?}", self.observed);
        }
        rest
    }

    fn live(&self) -> usize {
        self.observed
            .instances
            .iter()
            .filter(|i| i.state.is_live())
            .count()
    }

    fn is_interrupted(&self, id: &str) -> bool {
        let notice = self.observed.notices.get(id);
        notice.is_some_and(|notice| notice.is_interruption(self.now))
    }

    /// Asserts what must hold for every plan.
    fn check(&self, desired: &Desired, plan: &Plan) {
        let (mut launched, mut terminated) = (0, BTreeSet::new());
        let mut numbers = BTreeSet::new();
        let repeated: u32 = self
            .observed
            .launches
            .iter()
            .filter(|l| {
                plan.actions
                    .iter()
                    .any(|a| matches!(a, Action::Launch(n) if n.launch == l.launch))
            })
            .map(|l| l.unlisted(&self.observed.instances))
            .sum();
        for action in &plan.actions {
            match action {
                Action::Launch(l) => {
                    assert!(!desired.deleted, "a deleted pool launches");
                    assert!(numbers.insert(l.launch), "a number twice");
                    launched += l.unlisted(&self.observed.instances);
                }
                Action::Terminate { id, .. } => {
                    self.check_victim(desired, id);
                    assert!(terminated.insert(id.as_str()), "{id} twice");
                }
                Action::Bind { lease, instance_id } => {
                    assert!(desired.open_leases().any(|l| l.uid == *lease));
                    let before = self.observed.lease_of(instance_id);
                    let before = before.is_none_or(|before| before == lease);
                    assert!(before, "given twice");
                }
                _ => {}
            }
        }
        let is_over = |uid: &str| desired.leases.iter().any(|l| l.uid == uid && l.is_over);
        let counts = |i: &&Instance| {
            let over = self.observed.lease_of(&i.id).is_some_and(is_over);
            i.state.is_live() && !self.is_interrupted(&i.id) && !over
        };
        let counted = self.observed.instances.iter().filter(counts);
        let ending = counted
            .clone()
            .filter(|i| terminated.contains(i.id.as_str()))
            .count();
        let counted = u32::try_from(counted.count() - ending).unwrap();
        let pending: u32 = self
            .observed
            .launches
            .iter()
            .filter(|l| !l.is_overdue(false, self.now))
            .map(|l| l.unlisted(&self.observed.instances))
            .sum();
        let size = if desired.has_ended(self.now) {
            Size::NONE
        } else {
            desired.size
        };
        assert!(
            launched == 0 || counted + launched + pending - repeated <= size.maximum,
            "more than its maximum: {plan:?}"
        );
        let is_broken = |i: &&Instance| {
            let is_off = matches!(i.state, InstanceState::Stopped | InstanceState::Stopping);
            let is_of_another_image =
                desired.replace.other_image && desired.image_id.as_ref() != Some(&i.image_id);
            let is_useless =
                is_off || is_of_another_image || self.observed.impaired.contains(&i.id);
            terminated.contains(i.id.as_str()) && is_useless
        };
        let broken = self.observed.instances.iter().filter(is_broken).count();
        assert!(
            desired.deleted || ending == broken || counted >= size.minimum,
            "falls below its minimum: {plan:?}"
        );
    }

    fn check_victim(&self, desired: &Desired, id: &str) {
        let ours = self.observed.instances.iter().any(|i| i.id == id);
        let promised = self
            .observed
            .launches
            .iter()
            .flat_map(|l| l.answer.iter().flatten());
        assert!(
            ours || promised.into_iter().any(|one| one.id == id),
            "terminates {id}, which is not the pool's"
        );
        assert!(!self.is_interrupted(id), "AWS is taking {id} back");
        let held = self.observed.lease_of(id).is_some_and(|uid| {
            !desired
                .leases
                .iter()
                .any(|lease| lease.uid == uid && lease.is_over)
        });
        assert!(
            !held || (desired.deleted && desired.force),
            "somebody has {id}"
        );
    }

    fn act(&mut self, action: &Action) {
        let observed = &mut self.observed;
        match action {
            Action::CreateGroup { rules, .. } => {
                observed.groups.push(group("sg-1", rules.clone()));
            }
            Action::SetGroupRules { group_id, .. } => {
                let ours = observed.groups.iter_mut().find(|g| &g.id == group_id);
                let ours = ours.unwrap();
                ours.rules = rules();
                ours.foreign_rule_ids.clear();
            }
            Action::Launch(l) => {
                observed.templates.insert(l.generation.clone());
                for number in 0..l.unlisted(&observed.instances) {
                    let id = format!("i-launch-{}-{number}", l.launch);
                    observed.instances.push(Instance {
                        offering: l.offerings[0].clone(),
                        generation: Some(l.generation.clone()),
                        launched_at: Some(self.now),
                        ..instance(&id, l.launch, InstanceState::Pending)
                    });
                }
            }
            Action::Forget { launch } => observed.launches.retain(|l| l.launch != *launch),
            Action::Bind { lease, instance_id } => {
                observed.bindings.insert(lease.clone(), instance_id.clone());
                for instance in observed
                    .instances
                    .iter_mut()
                    .filter(|i| i.id == *instance_id)
                {
                    instance.lease = Some(lease.clone());
                    instance.lease_digest = Some(DIGEST.into());
                }
            }
            Action::Authorize { instance_id, tags } => {
                let authorized = observed.instances.iter_mut();
                for instance in authorized.filter(|i| i.id == *instance_id) {
                    instance.authorize(tags);
                }
            }
            Action::Terminate { id, .. } => {
                for instance in observed.instances.iter_mut().filter(|i| &i.id == id) {
                    instance.state = InstanceState::ShuttingDown;
                }
                // EC2 terminates an instance even while no list shows it.
                let is_it = |l: &Launch| l.answer.iter().flatten().any(|one| one.id == *id);
                observed.launches.retain(|l| !is_it(l));
            }
            Action::DeleteTemplate { generation } => {
                observed.templates.remove(generation);
            }
            Action::DeleteGroup { group_id } => observed.groups.retain(|g| &g.id != group_id),
            Action::Home(action) => homes::act(action, &mut observed.home),
        }
    }
}

/// Whether an action ends an instance that is replaced.
fn is_replacement(action: &Action) -> bool {
    let Action::Terminate { why, .. } = action else {
        return false;
    };
    matches!(
        why,
        Disruption::Impaired
            | Disruption::Useless
            | Disruption::NotSetUp
            | Disruption::OtherImage
            | Disruption::Drifted
            | Disruption::Rebalance
            | Disruption::BackToSpot
    )
}

fn rules() -> GroupRules {
    GroupRules {
        ssh_cidrs: ["203.0.113.0/24".to_owned()].into(),
        ssh_groups: BTreeSet::new(),
        members: true,
    }
}

fn group(id: &str, rules: GroupRules) -> Group {
    Group {
        id: id.into(),
        pool_uid: POOL.into(),
        vpc_id: VPC.into(),
        rules,
        foreign_rule_ids: BTreeSet::new(),
    }
}
