//! What a pool wants, as far as that is known.

use jiff::{SignedDuration, Timestamp};
use provider_aws::Ec2Error;
use provider_core::{Desired, SecurityGroups};

use crate::region::Snapshot;
use crate::validate::{Invalid, Valid};

/// How long EC2 may fail before a condition says so. Most failures of AWS pass within seconds. Each
/// change of a condition costs a write of the pool and a reconcile of the composite above it.
const PATIENCE: SignedDuration = SignedDuration::from_mins(1);

/// The desired state of a pool.
pub(super) enum Want {
    /// The pool is deleted and wants nothing.
    Nothing(Desired),
    /// The pool wants what its valid spec says.
    Valid(Valid),
    /// The spec is invalid: everything stays as it is, except for leases, keys, and what ends.
    Invalid(Invalid, Desired),
    /// EC2 did not tell all that a plan depends on: everything stays as it is, with the same
    /// exceptions.
    Unjudged(Unknown, Desired),
}

/// What EC2 did not tell: the first error.
#[derive(Debug, Default)]
pub(super) struct Unknown(Option<Ec2Error>);

impl Unknown {
    /// Notes that a call failed whose answer the plan depends on.
    pub(super) fn note(&mut self, error: Ec2Error) {
        self.0.get_or_insert(error);
    }

    /// The first error.
    pub(super) fn error(&self) -> Option<&Ec2Error> {
        self.0.as_ref()
    }
}

impl Want {
    pub(super) fn desired(&self) -> &Desired {
        match self {
            Self::Nothing(desired) | Self::Invalid(_, desired) | Self::Unjudged(_, desired) => {
                desired
            }
            Self::Valid(valid) => &valid.desired,
        }
    }

    pub(super) fn valid(&self) -> Option<&Valid> {
        match self {
            Self::Valid(valid) => Some(valid),
            _ => None,
        }
    }

    /// What an administrator should know about the spec; empty without anything.
    pub(super) fn advice(&self, now: Timestamp) -> String {
        self.valid()
            .map_or_else(String::new, |valid| valid.advice(now))
    }

    /// The desired state whose plan has only what ends, leases and keys.
    pub(super) fn bounded(&self) -> Option<&Desired> {
        match self {
            Self::Invalid(_, desired) | Self::Unjudged(_, desired) => Some(desired),
            Self::Nothing(_) | Self::Valid(_) => None,
        }
    }

    /// The same desired state, marked as unjudged if a call to EC2 failed. An invalid spec stays
    /// invalid: the condition then names the field and not EC2's error.
    pub(super) fn unless(self, unknown: Unknown) -> Self {
        if unknown.error().is_none() {
            return self;
        }
        match self {
            Self::Nothing(desired) | Self::Unjudged(_, desired) => Self::Unjudged(unknown, desired),
            Self::Valid(valid) => Self::Unjudged(unknown, unlaunchable(valid.desired)),
            Self::Invalid(..) => self,
        }
    }
}

/// The desired state of a pool from which nothing can be launched, and nothing has drifted.
pub(super) fn unlaunchable(desired: Desired) -> Desired {
    Desired {
        offerings: Vec::new(),
        groups: SecurityGroups::Unknown,
        ..desired
    }
}

/// The error of a part of the look, if the condition `Synced` has to show it.
pub(super) fn told_failure(snapshot: &Snapshot, now: Timestamp) -> Option<&Ec2Error> {
    let mut failures = snapshot.failures.values();
    let told = failures.find(|failure| is_told(&failure.error, failure.since, now));
    told.map(|failure| &failure.error)
}

/// Whether the condition `Synced` shows an error of EC2: a person has to act, or the error lasts.
pub(super) fn is_told(error: &Ec2Error, since: Timestamp, now: Timestamp) -> bool {
    error.class.needs_person() || now.duration_since(since) >= PATIENCE
}
