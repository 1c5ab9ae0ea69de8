//! One provider process, from its cache to its last write.

use std::sync::Arc;
use std::time::Duration;

use api::managed::ManagementAction;
use api::pool::SpotPool;
use futures::FutureExt as _;
use jiff::{SignedDuration, Timestamp};
use provider_aws::Ec2Error;
use provider_runtime::events::Happened;
use provider_runtime::policies::{self, Permitted};

use super::earth::{Shared, Stop};
use super::invariants;
use super::ours::{ACCOUNT, CLUSTER};
use super::port::SimulatedEc2;
use crate::access::Origin;
use crate::holds::Holds;
use crate::leases::Leasing;
use crate::pass::{Next, Pass, Told};
use crate::region::{Region, Snapshot};
use crate::seals::SEALS;
use crate::shared::Share;
use crate::status;
use crate::status_writer::StatusWriter;
use crate::{announcements, observer};

type Look = Result<Arc<Snapshot>, Ec2Error>;

/// One provider process. A crash loses all of it.
pub struct Provider {
    /// The actions that the pool's management policies permit.
    pub permitted: Permitted,
    /// The control plane's identity.
    pub cluster: &'static str,
    region: Arc<Region>,
    share: Share,
    held: Option<(Holds, Option<i64>)>,
    /// The newest version of the pool that the provider's cache showed.
    version: usize,
    /// The newest version of the leases that its cache showed.
    leases: usize,
    looks: Vec<(Timestamp, Look)>,
}

/// How far a provider's knowledge is behind.
#[derive(Clone, Copy, Debug, Default)]
pub struct Behind {
    /// The number of versions of the pool and of its leases.
    pub versions: usize,
    /// The number of looks at EC2, among those younger than [`OLDEST_LOOK`].
    pub looks: usize,
}

/// The result of a reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The provider wants to reconcile again after this time.
    Again(Duration),
    /// The API server refused a write.
    Refused,
    /// The pool was released.
    Released,
    /// The provider crashed.
    Died,
    /// The pool does not exist any more.
    Gone,
}

/// The longest time that a watch of the API server is behind.
const OLDEST_CACHE: SignedDuration = SignedDuration::from_secs(10);
/// The observer's interval, with some tolerance.
pub const OLDEST_LOOK: SignedDuration = SignedDuration::from_secs(20);

impl Provider {
    pub fn new(earth: &Shared) -> Self {
        Self::signed_for(earth, ACCOUNT)
    }

    /// A provider with credentials of this account.
    pub fn signed_for(earth: &Shared, account: &'static str) -> Self {
        Self::sharing(earth, account, Share::default())
    }

    /// The same, with what the regions of its process share.
    pub fn sharing(earth: &Shared, account: &'static str, share: Share) -> Self {
        let ec2 = Arc::new(SimulatedEc2 {
            earth: earth.clone(),
            account,
        });
        let name = "us-east-1".to_owned();
        let region = Region::new(ec2, name, share.clone(), Timestamp::MIN);
        Self::within(earth, Arc::new(region), share)
    }

    /// The part of a process that reconciles the earth's pool, next to a part that reconciles
    /// another pool with the same credentials.
    pub fn beside(earth: &Shared, other: &Self) -> Self {
        Self::within(earth, other.region.clone(), other.share.clone())
    }

    fn within(earth: &Shared, region: Arc<Region>, share: Share) -> Self {
        let version = earth.lock().store.versions.len() - 1;
        let mut provider = Self {
            permitted: policies::permitted(&[ManagementAction::All]).unwrap(),
            cluster: CLUSTER,
            region,
            share,
            held: None,
            version,
            leases: 0,
            looks: Vec::new(),
        };
        provider.look(earth);
        provider
    }

    /// Makes a look at all resources of this control plane, as the region's observer does.
    pub fn look(&mut self, earth: &Shared) {
        let at = earth.lock().now;
        self.looks
            .retain(|(taken, _)| at.duration_since(*taken) <= OLDEST_LOOK);
        // A look is not an effect: nothing is lost if it is interrupted.
        let (effects, all_effects, stop) = {
            let mut earth = earth.lock();
            (earth.effects, earth.all_effects, earth.stop.take())
        };
        let look = observer::snapshot(&self.region, at).now_or_never().unwrap();
        {
            let mut earth = earth.lock();
            (earth.effects, earth.all_effects, earth.stop) = (effects, all_effects, stop);
        }
        let (_, look) = self.region.publish(look, at);
        self.looks.push((at, look));
        let events = std::mem::take(&mut earth.lock().queue);
        announcements::note(&self.region, events.iter(), at);
    }

    /// Makes a look that no reconcile uses.
    pub fn glance(&self, earth: &Shared) -> Look {
        let at = earth.lock().now;
        observer::snapshot(&self.region, at).now_or_never().unwrap()
    }

    pub fn region(&self) -> &Region {
        &self.region
    }

    /// What the regions of the process share.
    pub fn share(&self) -> Share {
        self.share.clone()
    }

    /// The memory of the process, which a crash loses.
    pub fn process(&self) -> Arc<Region> {
        self.region.clone()
    }

    /// Runs one reconcile until it ends or crashes. If it pauses, `meanwhile` runs, and the
    /// reconcile continues. Afterwards the invariants are checked.
    pub fn drive(
        &mut self,
        earth: &Shared,
        behind: Behind,
        stop: Option<Stop>,
        meanwhile: impl FnOnce(&Shared),
    ) -> (Turn, Vec<Happened>) {
        let Some((pool, look)) = self.cached(earth, behind) else {
            return (Turn::Gone, Vec::new());
        };
        let outer = {
            let mut earth = earth.lock();
            let outer_stop = stop.and_then(|stop| earth.stop.replace(stop));
            (std::mem::take(&mut earth.effects), outer_stop)
        };
        let mut meanwhile = Some(meanwhile);
        let mut told = Told::default();
        let mut running = Box::pin(self.reconcile(earth, pool, look, &mut told));
        let turn = loop {
            if let Some(ended) = running.as_mut().now_or_never() {
                break ended.unwrap_or(Turn::Refused);
            }
            let is_paused = std::mem::take(&mut earth.lock().is_paused);
            match meanwhile.take_if(|_| is_paused) {
                Some(meanwhile) => meanwhile(earth),
                None => break Turn::Died,
            }
        };
        drop(running);
        let mut earth = earth.lock();
        earth.effects = outer.0;
        if stop.is_some() {
            earth.stop = outer.1;
        }
        invariants::check_known(&mut earth);
        earth.let_leases_go();
        let happened = match turn {
            Turn::Died => Vec::new(),
            Turn::Refused => told.done,
            _ => [told.found, told.done].concat(),
        };
        (turn, happened)
    }

    /// The pool and the look that this provider knows.
    fn cached(&mut self, earth: &Shared, behind: Behind) -> Option<(SpotPool, Look)> {
        let earth = earth.lock();
        if earth.store.released_at.is_some() {
            return None;
        }
        let shown = earth.store.behind(behind.versions, OLDEST_CACHE, earth.now);
        self.version = self.version.max(shown);
        let shown = earth
            .lending
            .behind(behind.versions, OLDEST_CACHE, earth.now);
        self.leases = self.leases.max(shown);
        let last = self.looks.len() - 1;
        let look = &self.looks[last.saturating_sub(behind.looks)];
        Some((earth.store.versions[self.version].clone(), look.1.clone()))
    }

    async fn reconcile(
        &mut self,
        earth: &Shared,
        pool: SpotPool,
        look: Look,
        told: &mut Told,
    ) -> Result<Turn, kube::Error> {
        let now = earth.lock().now;
        let leases = earth.lock().lending.versions[self.leases].clone();
        let leasing = Leasing::of(&pool, &leases, &SEALS, now);
        let identity = SEALS.of(&pool).unwrap();
        let generation = pool.metadata.generation;
        let mut writer = StatusWriter::new(earth.clone(), &pool, now);
        let held = self.held.take().filter(|(_, of)| *of == generation);
        let pass = Pass {
            cluster: self.cluster,
            identity: &identity,
            pool: &pool,
            region: &self.region,
            origin: &Origin::for_tests(),
            permitted: self.permitted,
            deleted: pool.metadata.deletion_timestamp.is_some(),
            leasing: &leasing,
            registry: earth,
            holds: held.map(|(holds, _)| holds).unwrap_or_default(),
            now,
        };
        let passed = pass.run(&mut writer, look, told).await?;
        self.held = Some((passed.holds, generation));
        match passed.next {
            Next::Release => {
                writer.release().await?;
                Ok(Turn::Released)
            }
            Next::Again(after) => {
                let news = status::transitions(writer.before(), writer.after());
                told.found.extend(news);
                writer.write().await?;
                Ok(Turn::Again(after))
            }
        }
    }
}
