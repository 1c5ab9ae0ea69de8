//! A small EC2 for plans: it carries out actions at once and advances states on
//! demand.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use provider_core::{
    Action, Desired, Group, GroupRules, Instance, InstanceState, Launch, Market, Observed,
    Offering, SecurityGroups, Size, plan,
};

pub const NOW: Timestamp = Timestamp::UNIX_EPOCH;
const VPC: &str = "vpc-1";
const POOL: &str = "pool-uid";

pub struct World {
    pub observed: Observed,
    now: Timestamp,
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
        offerings: offerings(),
        groups: SecurityGroups::Owned {
            vpc_id: VPC.into(),
            rules: rules(),
        },
    }
}

pub fn instance(id: &str, slot: u32, launch: u64, state: InstanceState) -> Instance {
    Instance {
        id: id.into(),
        pool_uid: POOL.into(),
        slot,
        launch,
        offering: offerings().swap_remove(0),
        image_id: "ami-1".into(),
        state,
        state_reason: None,
        public_ip: None,
        private_ip: None,
        launched_at: None,
    }
}

pub fn launch(number: u64, slot: u32, instance_id: Option<&str>) -> Launch {
    Launch {
        launch: number,
        slot,
        offering: offerings().swap_remove(0),
        decided_at: NOW,
        instance_id: instance_id.map(Into::into),
    }
}

impl World {
    /// Carries a plan out and checks what must hold of every plan.
    pub fn apply(&mut self, plan: &provider_core::Plan) {
        for action in &plan.actions {
            self.act(action);
        }
        self.observed.settle();
    }

    /// Pending instances run, shutting-down ones are gone.
    pub fn settle_states(&mut self) {
        for instance in &mut self.observed.instances {
            instance.state = match instance.state {
                InstanceState::Pending => InstanceState::Running,
                InstanceState::ShuttingDown => InstanceState::Terminated,
                state => state,
            };
        }
    }

    /// Plans and acts until nothing is left to do, within a bound.
    pub fn run_to_rest(&mut self, desired: &Desired) {
        for _ in 0..8 {
            let next = plan(desired, &self.observed, self.now);
            self.check(desired, &next);
            self.apply(&next);
            let again = plan(desired, &self.observed, self.now);
            let regroup = next
                .actions
                .iter()
                .any(|a| matches!(a, Action::CreateGroup { .. }));
            let deletes = |p: &provider_core::Plan| {
                p.actions
                    .iter()
                    .any(|a| matches!(a, Action::DeleteGroup { .. }))
            };
            assert!(
                again.actions.is_empty() || regroup || deletes(&again),
                "acting left work: {next:?} then {again:?}"
            );
            self.settle_states();
            // Beyond every limit of eventual consistency.
            self.now = self
                .now
                .saturating_add(SignedDuration::from_mins(6))
                .unwrap();
        }
        let rest = plan(desired, &self.observed, self.now);
        assert_eq!(rest.actions, [], "never rests: {:?}", self.observed);
        let live = self.live();
        if desired.deleted {
            assert_eq!(live, 0);
            assert!(rest.is_released());
        } else {
            assert_eq!(live, usize::try_from(rest.target).unwrap());
        }
    }

    fn live(&self) -> usize {
        let filled = |i: &&Instance| i.state.fills_slot();
        self.observed.instances.iter().filter(filled).count()
    }

    fn check(&self, desired: &Desired, plan: &provider_core::Plan) {
        let (mut launched, mut terminated) = (0, BTreeSet::new());
        let mut numbers = BTreeSet::new();
        for action in &plan.actions {
            match action {
                Action::Launch(l) => {
                    assert!(!desired.deleted, "a deleted pool launches");
                    assert!(numbers.insert(l.launch), "a number twice");
                    launched += 1;
                }
                Action::Terminate { id, .. } => {
                    let ours = self.observed.instances.iter().any(|i| &i.id == id);
                    let promised = |l: &Launch| l.instance_id.as_ref() == Some(id);
                    assert!(
                        ours || self.observed.launches.iter().any(promised),
                        "terminates {id}, which is not the pool's"
                    );
                    terminated.insert(id.clone());
                }
                _ => {}
            }
        }
        let maximum = usize::try_from(desired.size.maximum).unwrap();
        let minimum = usize::try_from(desired.size.minimum).unwrap();
        assert!(launched == 0 || self.live() + launched <= maximum);
        assert!(
            desired.deleted || terminated.is_empty() || self.live() - terminated.len() >= minimum,
            "falls below its minimum"
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
                let id = format!("i-launch-{}", l.launch);
                observed.instances.push(Instance {
                    offering: l.offering.clone(),
                    ..instance(&id, l.slot, l.launch, InstanceState::Pending)
                });
            }
            Action::Forget { launch } => observed.launches.retain(|l| l.launch != *launch),
            Action::Terminate { id, .. } => {
                for instance in observed.instances.iter_mut().filter(|i| &i.id == id) {
                    instance.state = InstanceState::ShuttingDown;
                }
                // EC2 knows the instance even while it lists it to nobody.
                observed
                    .launches
                    .retain(|l| l.instance_id.as_ref() != Some(id));
            }
            Action::DeleteGroup { group_id } => observed.groups.retain(|g| &g.id != group_id),
        }
    }
}

fn rules() -> GroupRules {
    GroupRules {
        ssh_cidrs: ["203.0.113.0/24".to_owned()].into(),
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
