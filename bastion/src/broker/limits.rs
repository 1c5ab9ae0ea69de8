//! How much one person may do at once. The limits lock no person out. A refused command is possible a
//! second later, and a refused session when another one ends.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};

use devctl_core::problem::{Code, Problem};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The most sessions of one person on one replica. A connection to a workspace is a session.
const SESSIONS: usize = 32;
/// Commands a second, and how many at once.
const COMMANDS: (u32, u32) = (10, 20);
/// Operations of the API server a second, and how many at once.
const OPERATIONS: (u32, u32) = (20, 100);

/// The limits of everybody.
#[derive(Default)]
pub(super) struct Limits(Mutex<HashMap<String, Arc<Own>>>);

/// The limits of one person.
struct Own {
    sessions: Arc<Semaphore>,
    commands: DefaultDirectRateLimiter,
    operations: DefaultDirectRateLimiter,
}

/// A place for one session. It ends when it is dropped.
pub(super) struct Place {
    own: Arc<Own>,
    _permit: OwnedSemaphorePermit,
}

impl Limits {
    /// A place for one more session of a person.
    pub(super) fn enter(&self, user: &str) -> Result<Place, Problem> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = all
            .entry(user.to_owned())
            .or_insert_with(|| Arc::new(Own::new()));
        let permit = Arc::clone(&own.sessions).try_acquire_owned();
        let permit = permit.map_err(|_| {
            let message = format!("you have {SESSIONS} sessions on this bastion already");
            Problem::new(Code::Refused, "TooManySessions", message).next("end one of them")
        })?;
        Ok(Place {
            own: Arc::clone(own),
            _permit: permit,
        })
    }
}

impl Own {
    fn new() -> Self {
        Self {
            sessions: Arc::new(Semaphore::new(SESSIONS)),
            commands: limiter(COMMANDS),
            operations: limiter(OPERATIONS),
        }
    }
}

impl Place {
    /// Whether the person may give one more command now.
    pub(super) fn command(&self) -> Result<(), Problem> {
        passed(&self.own.commands, "commands", COMMANDS)
    }

    /// Whether the person may ask the API server once more now.
    pub(super) fn operation(&self) -> Result<(), Problem> {
        passed(&self.own.operations, "requests", OPERATIONS)
    }
}

fn passed(
    limiter: &DefaultDirectRateLimiter,
    what: &str,
    (each_second, _): (u32, u32),
) -> Result<(), Problem> {
    limiter.check().map_err(|_| {
        let message = format!("more than {each_second} {what} a second");
        Problem::new(Code::Refused, "TooFast", message).next("wait a second, then try again")
    })
}

fn limiter((each_second, at_once): (u32, u32)) -> DefaultDirectRateLimiter {
    let number = |count| NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
    RateLimiter::direct(Quota::per_second(number(each_second)).allow_burst(number(at_once)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_with_many_sessions_takes_no_place_of_another_one() {
        let limits = Limits::default();
        let taken: Vec<Place> = (0..SESSIONS)
            .map(|_| limits.enter("alice").unwrap())
            .collect();
        assert_eq!(
            limits.enter("alice").err().unwrap().reason,
            "TooManySessions"
        );
        limits.enter("bob").unwrap();
        drop(taken);
        limits.enter("alice").unwrap();
    }

    #[test]
    fn all_sessions_of_a_person_share_one_pace() {
        let limits = Limits::default();
        let (one, other) = (
            limits.enter("alice").unwrap(),
            limits.enter("alice").unwrap(),
        );
        let fast = (0..40).filter(|number| {
            let place = if number % 2 == 0 { &one } else { &other };
            place.command().is_ok()
        });
        // The test itself may take part of a second.
        assert!((20..30).contains(&fast.count()));
        limits.enter("bob").unwrap().command().unwrap();
    }
}
