//! The observed state of a pool.

use api::condition::{LAUNCHED, READY, SYNCED};
use api::pool::{PoolInstance, PoolScheduledEvent};
use function_workspace::cause::{Cause, Reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use provider_core::NoticeKind;

use crate::claim_paths::ClaimPaths;
use crate::finding::{self, Finding, Machine, Outlook};
use crate::setup;
use crate::spot::observed::ObservedPool;

/// The observed state of a pool; `None` is a pool that does not exist yet. `recorded` is the
/// instance of the last call.
pub fn finding(pool: Option<&ObservedPool>, recorded: Option<&str>, paths: &ClaimPaths) -> Finding {
    let Some(pool) = pool else {
        return Finding::absent(lost(None, recorded).unwrap_or_else(|| {
            Cause::new(Reason::Creating, "waiting for the SpotPool to be created")
        }));
    };
    Finding {
        machine: pool
            .usable(recorded)
            .map(|(instance, address)| machine(pool, instance, address)),
        in_order: pool.is_ready(),
        outlook: outlook(pool),
        cause: cause(pool, recorded, paths),
    }
}

fn outlook(pool: &ObservedPool) -> Outlook {
    if pool.unreadable.is_some() {
        Outlook::Unreadable
    } else if pool.running().next().is_some() {
        Outlook::Runs
    } else if pool.terminal_launch_failure().is_some() {
        Outlook::NeedsPerson
    } else {
        Outlook::Waiting
    }
}

fn machine(pool: &ObservedPool, instance: &PoolInstance, address: &str) -> Machine {
    Machine {
        id: instance.id.clone(),
        instance_type: instance.instance_type.clone(),
        capacity_type: instance.capacity_type,
        zone: instance.zone.clone(),
        public_ip: finding::address(instance.public_ip.as_deref()).map(str::to_owned),
        private_ip: finding::address(instance.private_ip.as_deref()).map(str::to_owned),
        address: address.to_owned(),
        is_taken_back: instance
            .notice
            .as_ref()
            .is_some_and(|n| NoticeKind::parse(&n.kind) == Some(NoticeKind::Interruption)),
        scheduled: instance
            .scheduled_event
            .as_ref()
            .map(|event| scheduled(&instance.id, event)),
        report: instance.activity.clone(),
        host_keys: finding::host_keys(instance.host_key.as_deref(), &instance.console_host_keys),
        setup: setup::of_pool(pool, instance),
    }
}

/// What AWS does to an instance, and the owner's choice ("Scheduled events for Amazon EC2 instances"
/// in the Amazon EC2 User Guide).
fn scheduled(id: &str, event: &PoolScheduledEvent) -> String {
    let code = event.code.as_str();
    let does = match code {
        "instance-retirement" | "instance-stop" => "ends",
        "instance-reboot" | "system-reboot" => "reboots",
        _ => "maintains the host of",
    };
    let when = event.not_before.as_ref();
    let when = when.map_or_else(String::new, |Time(at)| format!(" after {at:.0}"));
    format!(
        "AWS {does} {id}{when} ({code}): stop and resume the workspace before that, and it gets \
         another machine at a time of your choice"
    )
}

/// The most important cause: an error that a person must fix, then an error of the provider, then a
/// pending step.
fn cause(pool: &ObservedPool, recorded: Option<&str>, paths: &ClaimPaths) -> Cause {
    if let Some(problem) = &pool.unreadable {
        return Cause::new(
            Reason::StatusUnreadable,
            format!(
                "the SpotPool's status has an unknown shape ({problem}); check that the versions of provider-gpu-spot and function-gpu-workspace fit"
            ),
        );
    }
    if pool.deleting {
        return Cause::new(
            Reason::Deleting,
            "the SpotPool is being deleted; another one follows",
        );
    }
    let runs = pool.running().next().is_some();
    let failing = pool
        .terminal_launch_failure()
        .filter(|_| !runs)
        .or_else(|| pool.failing(SYNCED))
        .or_else(|| pool.failing(LAUNCHED).filter(|_| !runs));
    let lost = lost(Some(pool), recorded).filter(|_| !runs);
    match (failing, lost) {
        (Some(condition), lost) => {
            let message = match condition.message.as_str() {
                "" => format!(
                    "the SpotPool reports {} without a message",
                    condition.reason
                ),
                said => paths.translate(said),
            };
            Cause {
                reason: Reason::Reported(condition.reason.clone()),
                message: match lost {
                    Some(lost) => format!("{}: {message}", lost.message),
                    None => message,
                },
            }
        }
        (None, Some(lost)) => lost,
        (None, None) => waiting(pool, paths),
    }
}

fn lost(pool: Option<&ObservedPool>, recorded: Option<&str>) -> Option<Cause> {
    let id = recorded?;
    let instance = pool.and_then(|pool| pool.instance(id));
    let why = instance.and_then(|instance| instance.state_reason.as_deref());
    Some(finding::lost(id, why))
}

fn waiting(pool: &ObservedPool, paths: &ClaimPaths) -> Cause {
    let failing = pool.failing(READY);
    let said = failing.map_or("", |condition| condition.message.as_str());
    let message = if said.is_empty() {
        waited_for(pool)
    } else {
        paths.translate(said)
    };
    Cause {
        reason: failing.map_or(Reason::Creating, |condition| {
            Reason::Reported(condition.reason.clone())
        }),
        message,
    }
}

fn waited_for(pool: &ObservedPool) -> String {
    let Some(instance) = pool.newest() else {
        return "waiting for the SpotPool to launch an instance".into();
    };
    let which = format!(
        "instance {} ({}, {})",
        instance.id, instance.instance_type, instance.zone
    );
    if pool.usable(None).is_some() {
        format!("waiting for the SpotPool to report {which} as ready")
    } else if pool.running().next().is_some() {
        format!("waiting for an address of {which}")
    } else {
        format!("waiting for {which}, which is {}", instance.state)
    }
}
