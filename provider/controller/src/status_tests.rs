//! Tests of the status of a pool (readiness, refusals, losses), and of its events, which the
//! provider writes only on transitions.

use jiff::SignedDuration;
use provider_core::{Action, Disruption, Market, UnavailableOfferings};

use super::*;
use crate::expectations::Expectations;
use crate::seals::Marks;

/// The tags of the pool under test.
const MARKS: Marks<'static> = Marks {
    cluster: "cluster",
    pool: "pool-uid",
};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn offering(market: Market) -> Offering {
    Offering {
        instance_type: "g4dn.xlarge".into(),
        zone: "us-east-1a".into(),
        market,
    }
}

fn instance(id: &str, launch: u64, state: InstanceState) -> Instance {
    Instance {
        pool_uid: "pool-uid".into(),
        launch,
        offering: offering(Market::Spot),
        state,
        ..crate::simulation::instance_for_tests(id)
    }
}

fn observed(instances: Vec<Instance>) -> Observed {
    Observed {
        instances,
        ..Observed::default()
    }
}

fn wanting(deleted: bool) -> Desired {
    let pool = crate::simulation::pool_for_tests();
    Desired {
        deleted,
        ..crate::validate::deleted(&pool, MARKS)
    }
}

fn waiting(target: u32, waits: Vec<Wait>) -> Plan {
    Plan {
        target,
        actions: Vec::new(),
        waits,
        spot_short_since: None,
    }
}

fn shown(
    seen: &Observed,
    offerings: &[Offering],
    target: u32,
    now: Timestamp,
) -> SpotPoolObservation {
    let planned = Planned {
        target,
        waits: &[],
        spot_short_since: None,
        impaired_since: &BTreeMap::new(),
        consoles: &BTreeMap::new(),
        spot_prices: &BTreeMap::new(),
    };
    observation(seen, offerings, &planned, now)
}

fn refused_with(class: ErrorClass, code: &str, message: &str) -> LaunchOutcome {
    LaunchOutcome::Refused {
        offering: offering(Market::Spot),
        refusal: Refusal {
            code: code.into(),
            message: message.into(),
            class,
        },
    }
}

fn status_of(verdicts: impl IntoIterator<Item = Verdict>) -> SpotPoolStatus {
    let mut status = SpotPoolStatus::default();
    conclude(&mut status, verdicts, Some(1), NOW);
    status
}

fn launched(
    plan: &Plan,
    observed: &Observed,
    offerings: &[Offering],
    last: Option<&LaunchOutcome>,
    now: Timestamp,
) -> Option<Verdict> {
    super::launched(plan, observed, offerings, last, &Origin::for_tests(), now)
}

#[test]
fn a_pool_is_ready_only_when_every_wanted_instance_runs() {
    let running = instance("i-1", 0, InstanceState::Running);
    let pending = instance("i-2", 1, InstanceState::Pending);
    let half = observed(vec![running.clone(), pending]);
    let verdict = ready(&waiting(2, vec![]), &half, &wanting(false));
    assert_eq!(verdict.status, ConditionStatus::False);
    assert_eq!(
        (verdict.reason, verdict.message.as_str()),
        (reason::CREATING, "1 of 2 instances run")
    );
    let verdict = ready(&waiting(1, vec![]), &half, &wanting(false));
    assert_eq!(verdict.status, ConditionStatus::True);
    let none = ready(&waiting(0, vec![]), &observed(vec![]), &wanting(false));
    assert_eq!(none.status, ConditionStatus::True, "nothing is wanted");
}

#[test]
fn a_deleted_pool_is_never_ready() {
    let running = observed(vec![instance("i-1", 0, InstanceState::Running)]);
    let verdict = ready(&waiting(0, vec![]), &running, &wanting(true));
    assert_eq!(verdict.status, ConditionStatus::False);
    assert_eq!(verdict.reason, reason::DELETING);
}

#[test]
fn a_stopped_instance_is_named_with_the_next_step() {
    let ids = vec!["i-1".to_owned(), "i-2".to_owned()];
    let plan = waiting(2, vec![Wait::Instances, Wait::Stopped { ids }]);
    let verdict = ready(&plan, &observed(vec![]), &wanting(false));
    assert_eq!(verdict.reason, reason::UNAVAILABLE);
    assert_eq!(
        verdict.message,
        "i-1, i-2 was stopped by somebody: start it, or terminate it"
    );
}

#[test]
fn a_refusal_says_what_ec2_said_and_what_to_do() {
    let plan = waiting(1, vec![]);
    for (class, code, next) in [
        (
            ErrorClass::Quota,
            "VcpuLimitExceeded",
            "raise the quota L-3819A6DF",
        ),
        (
            ErrorClass::Capacity,
            "InsufficientInstanceCapacity",
            "it is tried again",
        ),
        (
            ErrorClass::Denied,
            "UnauthorizedOperation",
            "ClusterProviderConfig \"default\": check the permissions",
        ),
        (
            ErrorClass::Configuration,
            "InvalidParameterValue",
            "Said by EC2.",
        ),
    ] {
        let last = refused_with(class, code, "Said by EC2.");
        let verdict = launched(&plan, &observed(vec![]), &[], Some(&last), NOW).unwrap();
        assert_eq!(verdict.status, ConditionStatus::False);
        assert_eq!(verdict.reason, class.as_str());
        for part in [
            "g4dn.xlarge spot in us-east-1a: ",
            code,
            "Said by EC2.",
            next,
        ] {
            assert!(verdict.message.contains(part), "{}", verdict.message);
        }
    }
}

#[test]
fn an_on_demand_quota_is_not_mistaken_for_the_spot_one() {
    let last = LaunchOutcome::Refused {
        offering: offering(Market::OnDemand),
        refusal: Refusal {
            code: "VcpuLimitExceeded".into(),
            message: String::new(),
            class: ErrorClass::Quota,
        },
    };
    let plan = waiting(1, vec![]);
    let verdict = launched(&plan, &observed(vec![]), &[], Some(&last), NOW).unwrap();
    assert!(
        verdict.message.contains("L-DB2E81BA"),
        "{}",
        verdict.message
    );
    assert!(
        verdict.message.contains(": VcpuLimitExceeded; "),
        "no colon before nothing: {}",
        verdict.message
    );
}

#[test]
fn a_pool_that_waits_for_capacity_says_so_although_nothing_was_asked() {
    let spot = offering(Market::Spot);
    let refusal = Refusal {
        class: ErrorClass::Quota,
        code: "MaxSpotInstanceCountExceeded".into(),
        message: String::new(),
    };
    let mut unavailable = UnavailableOfferings::default();
    unavailable.refused(&spot, &refusal, std::slice::from_ref(&spot), NOW);
    let mut seen = observed(vec![]);
    seen.unavailable = unavailable;
    let until = NOW.saturating_add(SignedDuration::from_mins(15)).unwrap();
    let plan = waiting(1, vec![Wait::Capacity { until }]);
    let verdict = launched(&plan, &seen, std::slice::from_ref(&spot), None, NOW).unwrap();
    assert_eq!(verdict.reason, "Quota");
    let now = shown(&seen, std::slice::from_ref(&spot), 1, NOW);
    assert_eq!(
        now.unavailable_offerings[0].code,
        "MaxSpotInstanceCountExceeded"
    );
    let later = shown(&seen, &[spot], 1, until);
    assert_eq!(
        later.unavailable_offerings,
        [],
        "a rest that is over is not shown"
    );
}

#[test]
fn without_a_launch_there_is_no_verdict_about_launching() {
    let plan = waiting(1, vec![]);
    assert_eq!(launched(&plan, &observed(vec![]), &[], None, NOW), None);
    let last = LaunchOutcome::Launched;
    let verdict = launched(&plan, &observed(vec![]), &[], Some(&last), NOW).unwrap();
    assert_eq!(verdict.status, ConditionStatus::True);
}

#[test]
fn an_invalid_spec_is_told_by_its_field() {
    let invalid = Invalid {
        field: "image.id".into(),
        problem: "does not exist".into(),
    };
    let verdict = not_launchable(&invalid);
    assert_eq!(verdict.reason, "Configuration");
    assert_eq!(verdict.message, "spec.forProvider.image.id: does not exist");
}

#[test]
fn a_status_shows_no_dead_instances() {
    let seen = observed(vec![
        instance("i-1", 0, InstanceState::Running),
        instance("i-2", 1, InstanceState::ShuttingDown),
        instance("i-3", 2, InstanceState::Terminated),
    ]);
    let shown = shown(&seen, &[], 1, NOW);
    let ids: Vec<&str> = shown.instances.iter().map(|i| i.id.as_str()).collect();
    assert_eq!(ids, ["i-1", "i-2"]);
    assert_eq!((shown.size.desired, shown.size.running), (1, 1));
}

#[test]
fn a_lost_instance_has_one_event_and_a_terminated_one_has_none() {
    let up = observed(vec![
        instance("i-1", 0, InstanceState::Running),
        instance("i-2", 1, InstanceState::Pending),
        instance("i-3", 2, InstanceState::ShuttingDown),
        instance("i-4", 3, InstanceState::Running),
    ]);
    let before = shown(&up, &[], 4, NOW);
    let mut reclaimed = instance("i-1", 0, InstanceState::Terminated);
    reclaimed.state_reason = Some("Server.SpotInstanceTermination".into());
    let seen = observed(vec![reclaimed, instance("i-4", 3, InstanceState::Stopped)]);
    let told = lost(&before, &seen, &Expectations::default());
    let messages: Vec<&str> = told.iter().map(|(_, _, h)| h.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "lost i-1 (g4dn.xlarge spot in us-east-1a): Server.SpotInstanceTermination",
            "lost i-2 (g4dn.xlarge spot in us-east-1a): EC2 lists it no more",
        ]
    );
    assert!(told[0].1.is_some_and(Instance::was_reclaimed));
    assert!(told.iter().all(|(_, _, happened)| happened.is_warning));
    let after = shown(&seen, &[], 4, NOW);
    let again = lost(&after, &seen, &Expectations::default());
    assert!(again.is_empty(), "told twice");
}

#[test]
fn an_instance_that_this_process_ended_is_not_lost_before_the_status_says_so() {
    let up = ["i-1", "i-2", "i-3"].map(|id| instance(id, 0, InstanceState::Running));
    let before = shown(&observed(up.to_vec()), &[], 3, NOW);
    let mut gone = up.map(|i| Instance {
        state: InstanceState::ShuttingDown,
        ..i
    });
    gone[1].state_reason = Some("Server.SpotInstanceTermination".into());
    let seen = observed(gone.to_vec());
    let mut ended = Expectations::default();
    ended.note(&["i-1".to_owned(), "i-2".to_owned()], NOW);
    let told = lost(&before, &seen, &ended);
    let ids: Vec<&str> = told.iter().map(|(_, i, _)| &*i.unwrap().id).collect();
    assert_eq!(ids, ["i-2", "i-3"], "AWS took i-2 back at the same time");
}

#[test]
fn events_tell_of_transitions_and_of_nothing_else() {
    let ready = |holds| Verdict::ready(holds, reason::AVAILABLE, "");
    let failed = || Verdict::not_synced("update", &"AuthFailure");
    let reasons = |before: &SpotPoolStatus, after: &SpotPoolStatus| -> Vec<&'static str> {
        let happened = transitions(before, after);
        happened.into_iter().map(|h| h.reason).collect()
    };
    let none = SpotPoolStatus::default();
    let good = status_of([ready(true), Verdict::synced()]);
    let bad = status_of([ready(false), failed()]);
    assert_eq!(reasons(&none, &good), ["Ready"]);
    assert_eq!(reasons(&good, &good), [""; 0]);
    assert_eq!(reasons(&good, &bad), ["ReconcileError"]);
    assert_eq!(reasons(&bad, &bad), [""; 0]);
    assert_eq!(reasons(&bad, &good), ["Ready"]);
    let paused = status_of([Verdict::paused()]);
    assert_eq!(reasons(&good, &paused), ["ReconciliationPaused"]);
    assert_eq!(reasons(&paused, &paused), [""; 0]);
}

#[test]
fn another_class_of_refusal_is_told_and_the_same_one_is_not() {
    let told = |class, code| {
        let last = refused_with(class, code, "");
        let plan = waiting(1, vec![]);
        status_of(launched(&plan, &observed(vec![]), &[], Some(&last), NOW))
    };
    let capacity = told(ErrorClass::Capacity, "InsufficientInstanceCapacity");
    let quota = told(ErrorClass::Quota, "VcpuLimitExceeded");
    assert_eq!(transitions(&capacity, &capacity), []);
    let happened = transitions(&capacity, &quota);
    assert_eq!(happened.len(), 1);
    assert_eq!(happened[0].reason, "LaunchRefused");
    assert!(happened[0].message.contains("VcpuLimitExceeded"));
}

#[test]
fn a_deleted_pool_that_has_actions_left_is_not_released() {
    let mut plan = waiting(0, vec![]);
    assert!(plan.is_released());
    plan.actions.push(Action::Terminate {
        id: "i-1".into(),
        why: Disruption::PoolDeleted,
    });
    assert!(!plan.is_released());
}
