//! One provider on its earth.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::condition::{self, Condition};
use api::managed::{ManagementAction, ProviderConfigReference};
use api::pool::{
    PoolImage, PoolSize, PoolSsh, SpotPool, SpotPoolObservation, SpotPoolParameters, SpotPoolSpec,
};
use jiff::{SignedDuration, Timestamp};
use memory_ec2::{Buckets, Cloud, Fault, Faults, Firewall, Habits, Pace, SplitMix64};
use provider_aws::{Ec2, GroupRequest, LaunchPlace, LaunchRequest, Tags, TemplateRequest};
use provider_core::{Instance, InstanceState, Market, Offering};
use provider_runtime::events::Happened;

use super::earth::{At, Earth, How, Shared, Stop};
use super::invariants;
use super::lending::Lending;
use super::luck::{GOOD_IMAGE, OTHER_IMAGE};
use super::ours::{ACCOUNT, Instances as _, POOL_UID, VPC, subnets};
use super::provider::{Behind, Provider, Turn};
use super::store::{Edit, Store};

/// The earth and a provider.
pub struct World {
    pub earth: Shared,
    pub provider: Provider,
    /// The events for users.
    pub happened: Vec<Happened>,
}

/// A pool of `g4dn.xlarge`, spot, in two zones.
pub fn pool(minimum: i32) -> SpotPool {
    let spec = SpotPoolSpec {
        write_connection_secret_to_ref: None,
        management_policies: vec![ManagementAction::All],
        provider_config_ref: ProviderConfigReference::default(),
        for_provider: SpotPoolParameters {
            read_console: false,
            home: None,
            region: "us-east-1".into(),
            size: size(minimum),
            capacity_type: api::capacity::CapacityType::Spot,
            instance_types: vec!["g4dn.xlarge".into()],
            type_preference: api::pool::PoolTypePreference::Ordered,
            spread: None,
            fallback: None,
            replace: None,
            leases: None,
            ends_at: None,
            zones: None,
            subnet_ids: None,
            image: PoolImage {
                id: "ami-0123456789abcdef0".into(),
            },
            user_data: Some("#cloud-config".into()),
            security_group_ids: None,
            ssh: Some(PoolSsh {
                allowed_cidrs: vec!["203.0.113.0/24".into()],
                allowed_security_group_ids: vec![],
            }),
            authorized_keys: None,
            root_volume_size_gib: None,
            kms_key_id: None,
            iam_instance_profile: None,
            tags: [].into(),
        },
    };
    let mut pool = SpotPool::new("alice", spec);
    pool.metadata.namespace = Some("team-vision".into());
    pool.metadata.uid = Some(POOL_UID.into());
    pool.metadata.generation = Some(1);
    pool
}

/// A pool for tests of other modules.
pub fn for_tests() -> SpotPool {
    pool(1)
}

/// EC2 for tests of other modules.
pub fn ec2_for_tests() -> Arc<dyn Ec2> {
    World::new(pool(1)).provider.region().ec2.clone()
}

/// A running spot instance for tests of other modules.
pub fn instance_for_tests(id: &str) -> Instance {
    Instance {
        id: id.into(),
        pool_uid: "uid".into(),
        launch: 1,
        generation: None,
        lease: None,
        lease_digest: None,
        authorized_keys: BTreeMap::new(),
        activity: None,
        host_key: None,
        setup: None,
        offering: Offering {
            instance_type: "g4dn.xlarge".into(),
            zone: "us-east-1a".into(),
            market: Market::Spot,
        },
        image_id: "ami-1".into(),
        state: InstanceState::Running,
        state_reason: None,
        state_message: None,
        public_ip: None,
        private_ip: None,
        launched_at: None,
    }
}

/// A size with exactly this many instances.
pub fn size(number: i32) -> PoolSize {
    PoolSize {
        minimum: number,
        maximum: number,
        idle: 0,
    }
}

impl World {
    pub fn new(pool: SpotPool) -> Self {
        Self::with_seed(pool, 0)
    }

    pub fn with_seed(pool: SpotPool, seed: u64) -> Self {
        let cloud = Cloud {
            machines: Vec::new(),
            fleets: BTreeMap::new(),
            templates: BTreeMap::new(),
            firewall: Firewall::default(),
            storage: memory_ec2::Storage::default(),
            subnets: subnets(),
            buckets: Buckets::default(),
            images: vec![GOOD_IMAGE, OTHER_IMAGE],
            deprecated: BTreeMap::new(),
            habits: Habits::default(),
            pace: Pace {
                lists_instance: SignedDuration::from_secs(3),
                lists_group: SignedDuration::from_secs(2),
                lists_volume: SignedDuration::from_secs(2),
                boots: SignedDuration::from_secs(20),
            },
        };
        let earth = Shared::new(Earth {
            // This is not a whole second, but the stored times are.
            now: Timestamp::new(1_700_000_000, 123_456_789).unwrap(),
            account: ACCOUNT,
            cloud,
            other_accounts: BTreeMap::new(),
            store: Store::new(pool),
            lending: Lending::default(),
            faults: Faults::default(),
            dice: SplitMix64(seed),
            calls: Vec::new(),
            asked: Vec::new(),
            spot_prices: BTreeMap::new(),
            queue: Vec::new(),
            violations: Vec::new(),
            written: Vec::new(),
            effects: 0,
            all_effects: 0,
            stop: None,
            is_sweeping: false,
            is_paused: false,
        });
        Self {
            provider: Provider::new(&earth),
            earth,
            happened: Vec::new(),
        }
    }

    /// Gives the provider credentials of another account. Other credentials are another region,
    /// which knows nothing yet.
    pub fn sign_for(&mut self, account: &'static str) {
        self.provider = Provider::signed_for(&self.earth, account);
    }

    /// A world at rest, with so old instances that EC2 certainly shows them.
    pub fn old(number: i32) -> Self {
        let mut world = Self::new(pool(number));
        world.settle().unwrap();
        world.work_for(600);
        world
    }

    pub fn edit(&self, edit: Edit) {
        let mut earth = self.earth.lock();
        let now = earth.now;
        earth.store.edit(edit, now);
    }

    /// Lets every call of an operation fail, until the faults end.
    pub fn always(&self, operation: &'static str, fault: Fault) {
        self.earth.lock().faults.always.insert(operation, fault);
    }

    pub fn wait(&self, seconds: i64) {
        self.earth
            .lock()
            .pass_time(SignedDuration::from_secs(seconds));
    }

    /// Hides an instance from EC2's lists for this long.
    pub fn hide(&self, id: &str, seconds: i64) {
        let mut earth = self.earth.lock();
        let until = earth.now.saturating_add(SignedDuration::from_secs(seconds));
        earth.cloud.machine(id).listed_from = until.unwrap();
    }

    /// A look at EC2 and a reconcile, both with current data.
    pub fn turn(&mut self) -> Turn {
        self.provider.look(&self.earth);
        self.reconcile(Behind::default(), None, |_| {})
    }

    /// The same, but the provider crashes before or after an effect.
    pub fn turn_until(&mut self, name: &'static str, how: How) -> Turn {
        self.provider.look(&self.earth);
        let at = At::Named(name);
        self.reconcile(Behind::default(), Some(Stop { at, how }), |_| {})
    }

    /// The same, but something happens before an effect.
    pub fn turn_meanwhile(&mut self, name: &'static str, meanwhile: impl FnOnce(&Shared)) -> Turn {
        self.provider.look(&self.earth);
        let (at, how) = (At::Named(name), How::Pauses);
        self.reconcile(Behind::default(), Some(Stop { at, how }), meanwhile)
    }

    /// Lets the provider work for this long, at its own pace. Returns the number of reconciles.
    pub fn work_for(&mut self, seconds: i64) -> usize {
        let end = self.earth.lock().now + SignedDuration::from_secs(seconds);
        for turns in 0.. {
            let now = self.earth.lock().now;
            if now >= end {
                return turns;
            }
            let pause = match self.turn() {
                Turn::Again(after) => SignedDuration::try_from(after).unwrap(),
                Turn::Gone | Turn::Released => end.duration_since(now),
                Turn::Refused | Turn::Died => SignedDuration::from_millis(200),
            };
            let pause = pause.min(end.duration_since(now));
            self.earth.lock().pass_time(pause);
        }
        unreachable!("the loop only ends by returning");
    }

    /// A reconcile of a provider that may be behind, stop, and restart.
    pub fn reconcile(
        &mut self,
        behind: Behind,
        stop: Option<Stop>,
        meanwhile: impl FnOnce(&Shared),
    ) -> Turn {
        let (turn, happened) = self.provider.drive(&self.earth, behind, stop, meanwhile);
        self.happened.extend(happened);
        if turn == Turn::Died {
            let account = self.earth.lock().account;
            self.provider = Provider::signed_for(&self.earth, account);
        }
        turn
    }

    /// Puts an instance and a group into EC2 that carry these tags.
    pub fn plant(&self, name: &str, tags: &[(&str, &str)]) {
        let tags: Tags = tags
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        let group = GroupRequest {
            name: name.into(),
            description: String::new(),
            vpc_id: VPC.into(),
            tags: tags.clone(),
        };
        let mut earth = self.earth.lock();
        let now = earth.now;
        let firewall = &mut earth.cloud.firewall;
        let group = firewall.create(&group, now, SignedDuration::ZERO).unwrap();
        let image = earth.cloud.image("ami-0123456789abcdef0").unwrap();
        let template = TemplateRequest {
            name: name.into(),
            group_ids: vec![group],
            image,
            user_data: None,
            root_volume_size_gib: None,
            kms_key_id: None,
            iam_instance_profile: None,
            shows_tags: false,
            tags: Tags::new(),
        };
        earth.cloud.templates.insert(name.into(), template);
        let request = LaunchRequest {
            token: name.into(),
            template: name.into(),
            count: 1,
            market: Market::Spot,
            places: vec![LaunchPlace {
                instance_type: "g4dn.xlarge".into(),
                zone: "us-east-1a".into(),
                subnet_id: "subnet-us-east-1a".into(),
            }],
            tags,
        };
        let all = |_: &_, missing| (missing, None);
        earth.cloud.launch(&request, all, now).unwrap();
    }

    pub fn observation(&self) -> SpotPoolObservation {
        invariants::known(&self.earth.lock())
    }

    pub fn condition(&self, type_: &str) -> Condition {
        let status = self.earth.lock().store.current().status.clone();
        condition::find(&status.unwrap().conditions, type_)
            .unwrap()
            .clone()
    }

    pub fn events(&self, reason: &str) -> Vec<&str> {
        let of_reason = self.happened.iter().filter(|h| h.reason == reason);
        of_reason.map(|h| h.message.as_str()).collect()
    }

    /// Panics if a rule was violated, and prints every violation.
    pub fn assert_lawful(&self) {
        let earth = self.earth.lock();
        assert!(earth.violations.is_empty(), "{:#?}", earth.violations);
    }
}
