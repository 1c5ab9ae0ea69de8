//! The limits of a workspace's runs, from its claim and the policy.

use api::lifecycle::{
    DurationBounds, LifecyclePolicy, WorkspaceLifecycle, WorkspaceState, duration,
};
use function_runtime::validation::{Violation, Violations};
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
    /// Longest extension of a run.
    pub max_extension: SignedDuration,
    /// The age at which a report is too old to use.
    pub stale_after: Length,
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
        let furthest = end.saturating_add(self.max_extension);
        let extended = extension.map(|until| until.min(furthest.unwrap_or(Timestamp::MAX)));
        Some(extended.map_or(end, |until| until.max(end)))
    }
}

/// Combines the limits of claim and policy.
///
/// # Errors
///
/// The claim sets a duration that is zero, or longer than the policy allows.
pub fn terms(
    claim: Option<&WorkspaceLifecycle>,
    policy: &LifecyclePolicy,
) -> Result<Terms, Violations> {
    let mut violations = Vec::new();
    let mut resolve = |field: &str, wish: Option<&String>, bounds: Option<&DurationBounds>| {
        resolved(field, wish, bounds).unwrap_or_else(|violation| {
            violations.push(violation);
            None
        })
    };
    let max_lifetime = resolve(
        "maxLifetime",
        claim.and_then(|claim| claim.max_lifetime.as_ref()),
        policy.max_lifetime.as_ref(),
    );
    let stop_after_idle = resolve(
        "stopAfterIdle",
        claim.and_then(|claim| claim.stop_after_idle.as_ref()),
        policy.stop_after_idle.as_ref(),
    );
    let delete_after_stopped = resolve(
        "deleteAfterStopped",
        claim.and_then(|claim| claim.delete_after_stopped.as_ref()),
        policy.delete_after_stopped.as_ref(),
    );
    Violations::into_result(violations)?;
    Ok(Terms {
        state: claim.map(|claim| claim.state).unwrap_or_default(),
        max_lifetime,
        stop_after_idle,
        delete_after_stopped,
        max_extension: policy
            .max_extension
            .as_deref()
            .and_then(duration)
            .unwrap_or_default(),
        stale_after: length(&policy.stale_after).unwrap_or_else(Length::zero),
    })
}

impl Terms {
    /// Whether a run has a limit other than the claim's `state`.
    pub fn have_limits(&self) -> bool {
        self.max_lifetime.is_some() || self.stop_after_idle.is_some()
    }
}

impl Length {
    fn zero() -> Self {
        Self {
            time: SignedDuration::ZERO,
            text: "0s".into(),
        }
    }
}

/// The duration in the claim, or else the default of the policy. The policy's maximum limits both.
fn resolved(
    field: &str,
    wish: Option<&String>,
    bounds: Option<&DurationBounds>,
) -> Result<Option<Length>, Violation> {
    let path = format!("spec.parameters.lifecycle.{field}");
    let of_policy = |text: Option<&String>| text.and_then(|text| length(text));
    let maximum = of_policy(bounds.and_then(|bounds| bounds.maximum.as_ref()));
    let Some(wish) = wish else {
        let default = of_policy(bounds.and_then(|bounds| bounds.default.as_ref()));
        return Ok(match (default, maximum) {
            (Some(default), Some(maximum)) if default.time > maximum.time => Some(maximum),
            (default, maximum) => default.or(maximum),
        });
    };
    let wish =
        length(wish).ok_or_else(|| Violation::new(&path, "is longer than a hundred years"))?;
    if wish.time <= SignedDuration::ZERO {
        return Err(Violation::new(path, "must be longer than no time at all"));
    }
    match maximum {
        Some(maximum) if wish.time > maximum.time => {
            let problem = format!("must be at most {}, the policy's maximum", maximum.text);
            Err(Violation::new(path, problem))
        }
        _ => Ok(Some(wish)),
    }
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

    fn lifetime(wish: Option<&str>, policy: Option<DurationBounds>) -> Result<String, String> {
        let claim = WorkspaceLifecycle {
            max_lifetime: wish.map(str::to_owned),
            ..WorkspaceLifecycle::default()
        };
        let policy = LifecyclePolicy {
            max_lifetime: policy,
            ..LifecyclePolicy::default()
        };
        let terms = terms(Some(&claim), &policy).map_err(|wrong| wrong.to_string())?;
        Ok(terms
            .max_lifetime
            .map_or("none".into(), |length| length.text))
    }

    #[test]
    fn a_claim_runs_as_long_as_it_says_and_the_policy_allows() {
        let both = || Some(bounds(Some("72h"), Some("14d")));
        assert_eq!(lifetime(None, None).unwrap(), "none");
        assert_eq!(lifetime(None, both()).unwrap(), "72h");
        assert_eq!(lifetime(Some("336h"), both()).unwrap(), "336h");
        assert_eq!(
            lifetime(Some("337h"), both()).unwrap_err(),
            "spec.parameters.lifecycle.maxLifetime: must be at most 14d, the policy's maximum"
        );
        assert_eq!(
            lifetime(Some("99d"), Some(bounds(Some("1h"), None))).unwrap(),
            "99d"
        );
        assert!(lifetime(Some("0s"), None).is_err());
    }

    #[test]
    fn a_policy_with_a_maximum_only_bounds_claims_that_say_nothing() {
        assert_eq!(
            lifetime(None, Some(bounds(None, Some("24h")))).unwrap(),
            "24h"
        );
        assert_eq!(
            lifetime(None, Some(bounds(Some("48h"), Some("24h")))).unwrap(),
            "24h"
        );
    }
}
