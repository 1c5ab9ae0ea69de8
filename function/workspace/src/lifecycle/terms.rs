//! The limits of a workspace's runs, from its claim and the policy.

use api::duration::duration;
use api::lifecycle::{
    DurationBounds, LifecyclePolicy, NEVER, RunLimits, WorkspaceLifecycle, WorkspaceState,
};
use api::limits::LifecycleLimits;
use function_runtime::validation::Violation;
use jiff::{SignedDuration, Timestamp};

/// The limits from claim and policy together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The state that the claim asks for.
    pub state: WorkspaceState,
    /// Longest run; none without a limit.
    pub max_lifetime: Option<Length>,
    /// Longest time without use; none without a limit.
    pub stop_after_idle: Option<Length>,
    /// Longest time between a stop and the deletion of the rest; none without a limit.
    pub delete_after_stopped: Option<Length>,
    /// Longest extension of a run; none without an extension.
    pub max_extension: Option<Length>,
    /// The age at which a report is too old to use.
    pub stale_after: Length,
    /// Whether the limits are known. They are not while no policy is in force, no call has recorded
    /// any, and the platform has none.
    pub are_known: bool,
}

/// A duration with its original text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Length {
    /// The duration.
    pub time: SignedDuration,
    /// The text in the claim or the policy, for messages.
    pub text: String,
}

impl Terms {
    /// When a run ends at the latest, including an allowed extension; none without a limit.
    pub fn end(&self, started: Timestamp, extension: Option<Timestamp>) -> Option<Timestamp> {
        let end = after(started, self.max_lifetime.as_ref()?);
        let furthest = match &self.max_extension {
            Some(extension) => after(end, extension),
            None => end,
        };
        let extended = extension.map(|until| until.min(furthest));
        Some(extended.map_or(end, |until| until.max(end)))
    }
}

/// The sources of the limits.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'a> {
    /// The claim's wishes.
    pub claim: &'a WorkspaceLifecycle,
    /// The bounds of policy and platform.
    pub bounds: Bounds<'a>,
    /// The limits that the last call recorded.
    pub recorded: Option<&'a RunLimits>,
}

/// The bounds of the limits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounds<'a> {
    /// The bounds of the policy in force, which lie within the platform's limits; none if no policy
    /// is in force.
    pub policy: Option<&'a LifecyclePolicy>,
    /// The platform's limits; none if there are none, or if they cannot be read.
    pub limits: Option<&'a LifecycleLimits>,
    /// Whether the rest of a stopped workspace may be deleted. It stays while the claim is refused.
    pub may_delete: bool,
}

impl Sources<'_> {
    /// The limits to enforce, and the claim's violations of the policy. A wish beyond the policy's
    /// maximum counts as the maximum, and a wish that is no usable duration counts as none: a
    /// refused claim has limits like any other. Only the rest of a stopped workspace is not deleted
    /// while its claim is refused.
    ///
    /// While no policy is in force, the recorded limits hold. Claim and platform may only make them
    /// shorter. A run without recorded limits has the platform's. Nothing is deleted meanwhile.
    pub fn terms(self) -> (Terms, Vec<Violation>) {
        let Some(policy) = self.bounds.policy else {
            return (self.without_policy(), Vec::new());
        };
        let mut violations = Vec::new();
        let mut limit = |field: &str, wish: Option<&String>, bounds: Option<&DurationBounds>| {
            let (limit, violation) = limited(field, wish, bounds);
            violations.extend(violation);
            limit
        };
        let Self { claim, .. } = self;
        let mut terms = Terms {
            state: claim.state,
            max_lifetime: limit(
                "maxLifetime",
                claim.max_lifetime.as_ref(),
                policy.max_lifetime.as_ref(),
            ),
            stop_after_idle: limit(
                "stopAfterIdle",
                claim.stop_after_idle.as_ref(),
                policy.stop_after_idle.as_ref(),
            ),
            delete_after_stopped: limit(
                "deleteAfterStopped",
                claim.delete_after_stopped.as_ref(),
                policy.delete_after_stopped.as_ref(),
            ),
            max_extension: policy
                .max_extension
                .as_deref()
                .and_then(length)
                .filter(Length::is_some_time),
            stale_after: length(&policy.stale_after).unwrap_or_else(Length::zero),
            are_known: true,
        };
        if !self.bounds.may_delete || !violations.is_empty() {
            terms.delete_after_stopped = None;
        }
        (terms, violations)
    }

    fn without_policy(self) -> Terms {
        let Self {
            claim,
            bounds: Bounds { limits, .. },
            recorded,
        } = self;
        let of_run = |of: fn(&RunLimits) -> &Option<String>| {
            recorded.and_then(|limits| length(of(limits).as_deref()?))
        };
        let of_platform = |of: fn(&LifecycleLimits) -> &Option<String>| {
            limits.and_then(|limits| length(of(limits).as_deref()?))
        };
        let wished = |wish: &Option<String>| {
            let wish = wish.as_deref().and_then(length);
            wish.filter(Length::is_some_time)
        };
        let extension = of_platform(|limits| &limits.max_extension);
        Terms {
            state: claim.state,
            max_lifetime: shortest([
                wished(&claim.max_lifetime),
                of_run(|limits| &limits.max_lifetime),
                of_platform(|limits| &limits.max_lifetime),
            ]),
            stop_after_idle: shortest([
                wished(&claim.stop_after_idle),
                of_run(|limits| &limits.stop_after_idle),
                of_platform(|limits| &limits.stop_after_idle),
            ]),
            delete_after_stopped: None,
            max_extension: match recorded {
                Some(_) => of_run(|limits| &limits.max_extension)
                    .and_then(|own| shortest([Some(own), extension]))
                    .filter(Length::is_some_time),
                None => extension.filter(Length::is_some_time),
            },
            stale_after: of_run(|limits| &limits.stale_after)
                .or_else(|| limits.and(length(&LifecyclePolicy::default().stale_after)))
                .unwrap_or_else(Length::zero),
            are_known: recorded.is_some() || limits.is_some(),
        }
    }
}

impl Terms {
    /// Whether a run has a limit other than the claim's `state`.
    pub fn have_limits(&self) -> bool {
        self.max_lifetime.is_some() || self.stop_after_idle.is_some()
    }

    /// The limits to record in status; none for a run without limits.
    pub fn limits(&self) -> Option<RunLimits> {
        let text = |limit: &Option<Length>| limit.as_ref().map(|limit| limit.text.clone());
        self.have_limits().then(|| RunLimits {
            max_lifetime: text(&self.max_lifetime),
            stop_after_idle: text(&self.stop_after_idle),
            max_extension: text(&self.max_extension),
            stale_after: self
                .stop_after_idle
                .is_some()
                .then(|| self.stale_after.text.clone()),
        })
    }
}

impl Length {
    fn zero() -> Self {
        Self {
            time: SignedDuration::ZERO,
            text: "0s".into(),
        }
    }

    fn is_some_time(&self) -> bool {
        self.time > SignedDuration::ZERO
    }
}

/// The duration in the claim, or else the default of the policy. The policy's maximum limits both.
/// The violation says why the claim's duration does not count.
fn limited(
    field: &str,
    wish: Option<&String>,
    bounds: Option<&DurationBounds>,
) -> (Option<Length>, Option<Violation>) {
    let of_policy = |text: Option<&String>| text.and_then(|text| length(text));
    let maximum = of_policy(bounds.and_then(|bounds| bounds.maximum.as_ref()));
    // `Never` has no length. The policy's maximum counts beside it.
    let default = of_policy(bounds.and_then(|bounds| bounds.default.as_ref()));
    let without_wish = match (default, &maximum) {
        (Some(default), Some(maximum)) if default.time > maximum.time => Some(maximum.clone()),
        (default, maximum) => default.or(maximum.clone()),
    };
    let Some(wish) = wish else {
        return (without_wish, None);
    };
    let violation = |problem: String| {
        let path = format!("spec.parameters.lifecycle.{field}");
        Some(Violation::new(path, problem))
    };
    if wish == NEVER {
        let problem = maximum.as_ref().map(beyond);
        return (maximum, problem.and_then(violation));
    }
    let Some(wish) = length(wish) else {
        return (
            without_wish,
            violation("is longer than a hundred years".to_owned()),
        );
    };
    if wish.time <= SignedDuration::ZERO {
        let problem = "must be longer than no time at all".to_owned();
        return (without_wish, violation(problem));
    }
    match maximum {
        Some(maximum) if wish.time > maximum.time => {
            let problem = beyond(&maximum);
            (Some(maximum), violation(problem))
        }
        _ => (Some(wish), None),
    }
}

fn beyond(maximum: &Length) -> String {
    format!("must be at most {}, the policy's maximum", maximum.text)
}

fn shortest<const N: usize>(limits: [Option<Length>; N]) -> Option<Length> {
    let limits = limits.into_iter().flatten();
    limits.min_by_key(|limit| limit.time)
}

fn length(text: &str) -> Option<Length> {
    Some(Length {
        time: duration(text)?,
        text: text.to_owned(),
    })
}

/// The time at which a duration is over.
pub(super) fn after(start: Timestamp, length: &Length) -> Timestamp {
    start.saturating_add(length.time).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(default: Option<&str>, maximum: Option<&str>) -> DurationBounds {
        DurationBounds {
            default: default.map(str::to_owned),
            maximum: maximum.map(str::to_owned),
        }
    }

    fn claim(max_lifetime: Option<&str>) -> WorkspaceLifecycle {
        WorkspaceLifecycle {
            max_lifetime: max_lifetime.map(str::to_owned),
            ..WorkspaceLifecycle::default()
        }
    }

    /// The enforced lifetime, and the violations.
    fn enforced(wish: Option<&str>, policy: Option<DurationBounds>) -> (String, Vec<String>) {
        let policy = LifecyclePolicy {
            max_lifetime: policy,
            ..LifecyclePolicy::default()
        };
        let sources = Sources {
            claim: &claim(wish),
            bounds: Bounds {
                policy: Some(&policy),
                limits: None,
                may_delete: true,
            },
            recorded: None,
        };
        let (terms, violations) = sources.terms();
        let said = violations.iter().map(ToString::to_string);
        (text(terms.max_lifetime), said.collect())
    }

    fn lifetime(wish: Option<&str>, policy: Option<DurationBounds>) -> String {
        let (enforced, violations) = enforced(wish, policy);
        assert!(violations.is_empty(), "{violations:?}");
        enforced
    }

    fn text(limit: Option<Length>) -> String {
        limit.map_or("none".into(), |limit| limit.text)
    }

    #[test]
    fn a_claim_runs_as_long_as_it_says_and_the_policy_allows() {
        let both = || Some(bounds(Some("72h"), Some("14d")));
        assert_eq!(lifetime(None, None), "none");
        assert_eq!(lifetime(None, both()), "72h");
        assert_eq!(lifetime(Some("336h"), both()), "336h");
        assert_eq!(lifetime(Some("99d"), Some(bounds(Some("1h"), None))), "99d");
        assert_eq!(
            lifetime(Some("Never"), Some(bounds(Some("1h"), None))),
            "none"
        );
        assert_eq!(lifetime(None, Some(bounds(Some("Never"), None))), "none");
        assert_eq!(
            lifetime(None, Some(bounds(Some("Never"), Some("14d")))),
            "14d"
        );
    }

    #[test]
    fn a_refused_duration_never_removes_the_limit() {
        let both = || Some(bounds(Some("72h"), Some("14d")));
        let path = "spec.parameters.lifecycle.maxLifetime";
        for (wish, limit, problem) in [
            ("337h", "14d", "must be at most 14d, the policy's maximum"),
            ("Never", "14d", "must be at most 14d, the policy's maximum"),
            ("99999d", "72h", "is longer than a hundred years"),
            ("0s", "72h", "must be longer than no time at all"),
        ] {
            let said = vec![format!("{path}: {problem}")];
            assert_eq!(
                enforced(Some(wish), both()),
                (limit.to_owned(), said),
                "{wish}"
            );
        }
    }

    #[test]
    fn an_unreadable_policy_leaves_the_recorded_limits_and_a_claim_only_shortens_them() {
        let recorded = RunLimits {
            max_lifetime: Some("72h".to_owned()),
            max_extension: Some("8h".to_owned()),
            ..RunLimits::default()
        };
        let terms = |wish: Option<&str>, recorded: Option<&RunLimits>| {
            let claim = claim(wish);
            let sources = Sources {
                claim: &claim,
                bounds: Bounds::default(),
                recorded,
            };
            sources.terms().0
        };
        let lifetime = |wish| text(terms(wish, Some(&recorded)).max_lifetime);
        assert_eq!(lifetime(None), "72h");
        assert_eq!(lifetime(Some("99d")), "72h");
        assert_eq!(lifetime(Some("1h")), "1h");
        assert_eq!(text(terms(None, Some(&recorded)).max_extension), "8h");
        assert_eq!(text(terms(Some("1h"), None).max_lifetime), "1h");
        assert!(!terms(None, None).are_known);
    }

    #[test]
    fn without_a_policy_the_platform_limits_a_run_and_never_lengthens_it() {
        let platform = LifecycleLimits {
            max_lifetime: Some("48h".to_owned()),
            stop_after_idle: Some("4h".to_owned()),
            max_extension: Some("2h".to_owned()),
        };
        let terms = |recorded: Option<&RunLimits>| {
            let bounds = Bounds {
                limits: Some(&platform),
                ..Bounds::default()
            };
            let claim = claim(Some("99d"));
            let sources = Sources {
                claim: &claim,
                bounds,
                recorded,
            };
            sources.terms().0
        };
        let unrecorded = terms(None);
        assert!(unrecorded.are_known);
        assert_eq!(text(unrecorded.max_lifetime), "48h");
        assert_eq!(text(unrecorded.stop_after_idle), "4h");
        assert_eq!(text(unrecorded.max_extension), "2h");
        assert_eq!(unrecorded.stale_after.text, "15m");
        for (recorded, enforced) in [("24h", "24h"), ("72h", "48h")] {
            let recorded = RunLimits {
                max_lifetime: Some(recorded.to_owned()),
                ..RunLimits::default()
            };
            let terms = terms(Some(&recorded));
            assert_eq!(text(terms.max_lifetime), enforced);
            assert_eq!(text(terms.max_extension), "none");
        }
    }

    #[test]
    fn a_policy_with_a_maximum_only_bounds_claims_that_say_nothing() {
        assert_eq!(lifetime(None, Some(bounds(None, Some("24h")))), "24h");
        assert_eq!(
            lifetime(None, Some(bounds(Some("48h"), Some("24h")))),
            "24h"
        );
    }
}
