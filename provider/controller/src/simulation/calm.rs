//! The state that a pool reaches once nothing disturbs it.

use std::collections::BTreeSet;
use std::time::Duration;

use api::condition::{self, ConditionStatus, READY, SYNCED};
use api::pool::SpotPoolParameters;
use jiff::SignedDuration;
use memory_ec2::{Disk, SecurityGroup, canonical};

use super::earth::Earth;
use super::invariants;
use super::ours::{Collection as _, Instances as _};
use super::provider::{Behind, Turn};
use super::storage;
use super::world::World;
use crate::leases::Leasing;
use crate::regions::TAG_KEYS;
use crate::seals::SEALS;

/// The longest time that the provider may wait on purpose: half an hour for an offering that was
/// refused repeatedly, then minutes for a launch that got no answer and is not listed.
const PATIENCE: SignedDuration = SignedDuration::from_mins(40);
/// The most reconciles in that time. A provider that polls more often makes too many calls to EC2.
const TURNS: usize = 250;
/// The time until the next reconcile that a pool at rest asks for.
const CALM: Duration = Duration::from_mins(1);
/// A lease that ends within this time wakes the pool before it is calm again.
const SOON: SignedDuration = SignedDuration::from_secs(70);

impl World {
    /// Ends every fault, and ends what keeps the pool's resources busy. Then lets the provider work
    /// until nothing is left to do. Returns the number of reconciles.
    pub fn settle(&mut self) -> Result<usize, String> {
        self.earth.lock().faults.end();
        self.earth.lock().end_what_others_do();
        let begun = self.earth.lock().now;
        for turns in 1..=TURNS {
            let turn = self.turn();
            if self.is_settled(turn) {
                return self.check_idle().map(|()| turns);
            }
            let pause = match turn {
                Turn::Again(after) => after,
                Turn::Refused | Turn::Died => Duration::from_millis(200),
                Turn::Released | Turn::Gone => return Err(format!("{turn:?}")),
            };
            let mut earth = self.earth.lock();
            earth.pass_time(SignedDuration::try_from(pause).unwrap());
            let waited = earth.now.duration_since(begun);
            if waited > PATIENCE {
                return Err(format!("{}, {waited:#} later", Self::unsettled(&earth)));
            }
        }
        let earth = self.earth.lock();
        Err(format!(
            "{}, {TURNS} reconciles later",
            Self::unsettled(&earth)
        ))
    }

    fn unsettled(earth: &Earth) -> String {
        let status = earth.store.current().status.clone().unwrap_or_default();
        let remains = invariants::remains(earth);
        let wrong = Self::differences(earth);
        let homes: Vec<_> = storage::homes(earth).collect();
        let copies: Vec<_> = storage::copies(earth).collect();
        format!("still wrong: {wrong:?}; in EC2: {remains:?}, {homes:?}, {copies:?}; {status:#?}")
    }

    fn is_settled(&self, turn: Turn) -> bool {
        let earth = self.earth.lock();
        if earth.store.is_deleted() {
            return turn == Turn::Released || turn == Turn::Gone;
        }
        turn == Turn::Again(CALM) && Self::differences(&earth).is_empty()
    }

    /// The differences of EC2 and the status from the spec.
    fn differences(earth: &Earth) -> Vec<&'static str> {
        let pool = earth.store.current();
        let status = pool.status.clone().unwrap_or_default();
        let spec = &pool.spec.for_provider;
        let open = earth.lending.current().iter().filter(|l| earth.is_open(l));
        let open = i32::try_from(open.count()).unwrap();
        let size = spec.size;
        let wanted = if earth.has_ended() {
            0
        } else {
            (size.idle + open).clamp(size.minimum, size.maximum)
        };
        let wanted = wanted.max(status.at_provider.size.leased);
        let shown: BTreeSet<String> = status
            .at_provider
            .instances
            .iter()
            .map(|i| i.id.clone())
            .collect();
        let live: BTreeSet<String> = earth.cloud.live().iter().map(|m| m.id.clone()).collect();
        let holds = |type_| {
            condition::find(&status.conditions, type_)
                .is_some_and(|c| c.status == ConditionStatus::True)
        };
        let ends_soon = |unavailable: &api::pool::UnavailableOffering| {
            unavailable.until.0.duration_since(earth.now) < SignedDuration::from_secs(5)
        };
        [
            (
                "rests",
                !status
                    .at_provider
                    .unavailable_offerings
                    .iter()
                    .any(ends_soon),
            ),
            (
                "leases end",
                Leasing::of(pool, earth.lending.current(), &SEALS, earth.now)
                    .next_end
                    .is_none_or(|end| end.duration_since(earth.now) > SOON),
            ),
            (
                "interruptions",
                earth.cloud.live().iter().all(|m| m.ends_at.is_none()),
            ),
            ("size", i32::try_from(live.len()) == Ok(wanted)),
            ("instances shown", shown == live),
            (
                "checks",
                status
                    .at_provider
                    .instances
                    .iter()
                    .all(|i| i.impaired_since.is_none())
                    || earth.cloud.live().iter().any(|m| m.is_impaired),
            ),
            ("no launch in doubt", status.at_provider.launches.is_empty()),
            (
                "rules",
                earth
                    .cloud
                    .firewall
                    .ours()
                    .all(|g| Self::is_open_to(spec, g)),
            ),
            (
                "group listed",
                earth
                    .cloud
                    .firewall
                    .ours()
                    .all(|g| g.listed_from <= earth.now),
            ),
            ("leases", !earth.lacks_of_leases()),
            (
                "bindings and ends",
                status
                    .at_provider
                    .leases
                    .values()
                    .chain(status.at_provider.ending.keys())
                    .all(|id| shown.contains(id)),
            ),
            (
                "deleted leases gone",
                earth
                    .lending
                    .current()
                    .iter()
                    .all(|lease| lease.metadata.deletion_timestamp.is_none()),
            ),
            ("home", Self::is_at_home(earth)),
            ("one group", earth.cloud.firewall.ours().count() == 1),
            ("ready", holds(READY)),
            ("synced", holds(SYNCED)),
        ]
        .into_iter()
        .filter_map(|(what, is_so)| (!is_so).then_some(what))
        .collect()
    }

    /// Whether a group has the rules of the spec, and no others.
    fn is_open_to(spec: &SpotPoolParameters, group: &SecurityGroup) -> bool {
        let read = group.read(&TAG_KEYS).unwrap();
        let cidrs = spec.ssh.iter().flat_map(|ssh| &ssh.allowed_cidrs);
        let groups = spec.ssh.iter();
        let groups = groups.flat_map(|ssh| &ssh.allowed_security_group_ids);
        read.foreign_rule_ids.is_empty()
            && read.rules.members == spec.leases.is_none()
            && read.rules.ssh_cidrs == cidrs.map(|cidr| canonical(cidr)).collect()
            && read.rules.ssh_groups == groups.cloned().collect()
    }

    /// Whether there is one home, of the desired size, and the instance has it.
    fn is_at_home(earth: &Earth) -> bool {
        let Some(wanted) = &earth.store.current().spec.for_provider.home else {
            return true;
        };
        let homes: Vec<_> = storage::homes(earth).collect();
        let users = homes.iter().filter_map(|disk| disk.user.as_ref());
        let users: Vec<_> = users.map(|(id, _)| id.clone()).collect();
        let live: Vec<_> = earth.cloud.live().iter().map(|m| m.id.clone()).collect();
        let cools = |disk: &Disk| {
            let since = |at| earth.now.duration_since(at);
            disk.grown_at
                .is_some_and(|at| since(at) < SignedDuration::from_hours(7))
        };
        let is_large = |disk: &&Disk| {
            i32::try_from(disk.size_gib).is_ok_and(|size| size >= wanted.size_gib) || cools(disk)
        };
        let shown = invariants::known(earth).home.and_then(|home| home.size_gib);
        let is_shown = |disk: &Disk| i32::try_from(disk.size_gib).ok() == shown;
        let copies = storage::copies(earth).count();
        let known = invariants::known(earth).home;
        let moves = known.is_some_and(|home| home.copy_of.is_some());
        let one = homes.len() == 1 && copies == 0;
        // The old volumes of a move are deleted once an instance has the copy, and then the
        // snapshot. The instance may end in between.
        let is_right = match &live[..] {
            [] => homes.is_empty() || one || (moves && homes.len() <= copies + 1),
            _ => one,
        };
        let last: Vec<_> = homes.iter().rev().take(1).collect();
        users == live
            && is_right
            && last.iter().all(|disk| is_large(disk))
            && last.iter().all(|disk| is_shown(disk))
    }

    /// A pool with nothing to do makes no call to EC2 except the shared look, and no write.
    fn check_idle(&mut self) -> Result<(), String> {
        if self.earth.lock().store.released_at.is_some() {
            let remains = invariants::remains(&self.earth.lock());
            return if remains.is_empty() {
                Ok(())
            } else {
                Err(format!("{remains:?} remain"))
            };
        }
        for _ in 0..2 {
            self.provider.look(&self.earth);
            let count = |earth: &Earth| (earth.calls.len(), earth.store.writes);
            let (calls, writes) = count(&self.earth.lock());
            let turn = self.reconcile(Behind::default(), None, |_| {});
            let mut earth = self.earth.lock();
            let mut called = earth.calls[calls..].to_vec();
            // A move that is not cleaned up yet: see the known limits in ARCHITECTURE.md.
            let home = invariants::known(&earth).home;
            if home.is_some_and(|home| home.copy_of.is_some()) {
                called.retain(|call| *call != "DescribeVolumes");
            }
            let written = earth.store.writes - writes;
            if turn != Turn::Again(CALM) || !called.is_empty() || written > 0 {
                let versions = earth.store.versions.iter().rev().take(written + 1);
                let statuses: Vec<_> = versions.map(|v| &v.status).collect();
                return Err(format!(
                    "not idle: {turn:?}, {called:?}, {written} writes: {statuses:#?}"
                ));
            }
            earth.pass_time(SignedDuration::from_millis(1300));
        }
        Ok(())
    }
}
