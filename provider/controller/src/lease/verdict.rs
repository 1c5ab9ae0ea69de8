//! Derives a lease's status from its pool's status. Pure.

use api::condition::{self, ConditionStatus, LAUNCHED, READY, SYNCED};
use api::lease::{SpotLease, SpotLeaseObservation, SpotLeaseStatus};
use api::pool::{PoolInstance, SpotPool, SpotPoolObservation};
use jiff::Timestamp;
use kube::ResourceExt;
use provider_runtime::conditions::{Verdict, reason};
use provider_runtime::events::Happened;
use provider_runtime::finalizer;

use crate::convert;
use crate::leases::expires_at;
use crate::seals::Identity;

/// Reason of `Ready`: the lease's lifetime is over.
pub const EXPIRED: &str = "Expired";
/// Reason of `Ready`: leases have all instances that the pool may have.
pub const POOL_FULL: &str = "PoolFull";

/// A lease, and its identity.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    /// The lease.
    pub lease: &'a SpotLease,
    /// Its identity.
    pub identity: &'a Identity,
}

fn seen(pool: &SpotPool) -> Option<&SpotPoolObservation> {
    pool.status.as_ref().map(|status| &status.at_provider)
}

/// The id of the instance that the pool has bound to the lease.
fn bound<'a>(pool: &'a SpotPool, known: Known<'_>) -> Option<&'a str> {
    let bound = seen(pool)?.leases.get(&known.identity.value);
    bound.map(String::as_str)
}

/// The instance that the pool has bound to the lease, as the pool's status shows it.
pub fn instance<'a>(pool: &'a SpotPool, known: Known<'_>) -> Option<&'a PoolInstance> {
    let id = bound(pool, known)?;
    seen(pool)?.instances.iter().find(|i| i.id == id)
}

/// The instance that the pool still has of a deleted lease. A pool without a status may have lost
/// the binding, and will find its instances again.
pub fn held(pool: &SpotPool, known: Known<'_>) -> Option<String> {
    let is_unknown =
        pool.status.is_none() && finalizer::is_present(&pool.metadata, finalizer::MANAGED);
    let unknown = is_unknown.then(|| format!("what SpotPool {} has of it", pool.name_any()));
    bound(pool, known).map(ToOwned::to_owned).or(unknown)
}

/// The text about a pool that cannot be read.
pub fn unreadable(pool: &str) -> String {
    format!("SpotPool {pool} cannot be read: its condition Synced names the field")
}

fn is_expired(lease: &SpotLease, pool: Option<&SpotPool>, now: Timestamp) -> bool {
    expires_at(lease, pool).is_some_and(|end| end <= now)
}

/// Whether the pool has something to do for the lease.
pub fn has_work_for(pool: Option<&SpotPool>, known: Known<'_>, now: Timestamp) -> bool {
    let Some(pool) = pool else { return false };
    let lease = known.lease;
    let status = lease.status.as_ref();
    let synced = status.and_then(|status| condition::find(&status.conditions, SYNCED));
    let is_known = synced.is_some_and(|c| c.observed_generation == lease.metadata.generation);
    !is_known || bound(pool, known).is_some() == is_expired(lease, Some(pool), now)
}

/// The leased instance in the form of the lease's status.
pub fn observation(known: Known<'_>, pool: Option<&SpotPool>) -> SpotLeaseObservation {
    let id = pool.and_then(|pool| bound(pool, known));
    let shown = pool.and_then(|pool| instance(pool, known));
    SpotLeaseObservation {
        lease_identity: Some(known.identity.sealed.clone()),
        instance_id: id.map(ToOwned::to_owned),
        instance_type: shown.map(|i| i.instance_type.clone()),
        zone: shown.map(|i| i.zone.clone()),
        capacity_type: shown.map(|i| i.capacity_type),
        state: shown.map(|i| i.state.clone()),
        public_ip: shown.and_then(|i| i.public_ip.clone()),
        private_ip: shown.and_then(|i| i.private_ip.clone()),
        notice: shown.and_then(|i| i.notice.clone()),
        expires_at: None,
    }
}

/// The condition `Ready` of a lease that is not deleted.
pub fn ready(known: Known<'_>, pool: Option<&SpotPool>, now: Timestamp) -> Verdict {
    let lease = known.lease;
    let reference = &lease.spec.for_provider.pool_ref.name;
    let not = |reason, message: String| Verdict::ready(false, reason, message);
    if is_expired(lease, pool, now) {
        return not(EXPIRED, "its lifetime is over: make another lease".into());
    }
    let Some(pool) = pool else {
        let namespace = lease.namespace().unwrap_or_default();
        let message = format!(
            "spec.forProvider.poolRef.name: there is no SpotPool {reference} in {namespace}"
        );
        return not(reason::UNAVAILABLE, message);
    };
    match bound(pool, known) {
        Some(id) => of_instance(id, instance(pool, known), known.identity, now),
        None => waiting(pool, reference, now),
    }
}

fn of_instance(
    id: &str,
    instance: Option<&PoolInstance>,
    lease: &Identity,
    now: Timestamp,
) -> Verdict {
    let not = |reason, message: String| Verdict::ready(false, reason, message);
    let Some(instance) = instance else {
        return not(reason::UNAVAILABLE, format!("EC2 does not list {id}"));
    };
    if instance.lease.as_ref() != Some(&lease.value) {
        return not(reason::CREATING, format!("{id} is being handed over"));
    }
    match instance.state.as_str() {
        "running" => {
            let notice = instance.notice.as_ref().and_then(convert::notice_from_api);
            let is_taken = notice.is_some_and(|notice| notice.is_interruption(now));
            let message = format!("AWS takes {id} back within two minutes; another one follows");
            let message = if is_taken { message } else { String::new() };
            Verdict::ready(true, reason::AVAILABLE, message)
        }
        "stopped" | "stopping" => {
            let message = format!("{id} was stopped by somebody: start it, or delete the lease");
            not(reason::UNAVAILABLE, message)
        }
        state => not(reason::UNAVAILABLE, format!("{id} is {state}")),
    }
}

fn waiting(pool: &SpotPool, name: &str, now: Timestamp) -> Verdict {
    let not = |reason, message: String| Verdict::ready(false, reason, message);
    if pool.metadata.deletion_timestamp.is_some() {
        let message = format!("SpotPool {name} is being deleted: lease from another one");
        return not(reason::UNAVAILABLE, message);
    }
    let spec = &pool.spec.for_provider;
    if spec.leases.is_none() {
        let message =
            format!("SpotPool {name} hands nothing out: it has no spec.forProvider.leases");
        return not(reason::UNAVAILABLE, message);
    }
    if spec.has_ended(now) {
        let message =
            format!("SpotPool {name} has ended (spec.forProvider.endsAt): lease from another one");
        return not(reason::UNAVAILABLE, message);
    }
    let leased = seen(pool).map_or(0, |seen| seen.size.leased);
    if leased >= spec.size.maximum {
        let message = format!(
            "every instance of SpotPool {name} is in use: raise its size.maximum of {}, or end \
             another lease",
            spec.size.maximum
        );
        return not(POOL_FULL, message);
    }
    let conditions = pool.status.as_ref().map(|status| &status.conditions);
    let launched = conditions.and_then(|all| condition::find(all, LAUNCHED));
    let refused = launched.filter(|c| c.status == ConditionStatus::False);
    let why = refused.map(|c| format!("; its last launch: {}: {}", c.reason, c.message));
    let message = format!(
        "waits for an instance of SpotPool {name} to run{}",
        why.unwrap_or_default()
    );
    not(reason::CREATING, message)
}

/// The event for a change of `Ready`.
pub fn transition(before: &SpotLeaseStatus, after: &SpotLeaseStatus) -> Option<Happened> {
    let old = condition::find(&before.conditions, READY);
    let new = condition::find(&after.conditions, READY)?;
    let same = old.is_some_and(|old| (old.status, &old.reason) == (new.status, &new.reason));
    if same {
        return None;
    }
    let id = after.at_provider.instance_id.as_deref().unwrap_or_default();
    match (new.status, new.reason.as_str()) {
        (ConditionStatus::True, _) => Some(Happened::normal("Leased", format!("has {id}"))),
        (_, EXPIRED) => Some(Happened::normal(EXPIRED, new.message.clone())),
        (_, POOL_FULL) => Some(Happened::warning(POOL_FULL, new.message.clone())),
        (_, reason::UNAVAILABLE) => {
            Some(Happened::warning(reason::UNAVAILABLE, new.message.clone()))
        }
        _ => None,
    }
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
