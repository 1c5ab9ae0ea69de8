//! EC2 in memory, as AWS documents it.
//!
//! [`Cloud`] is one region of one account: instances, launch templates, fleets by their client
//! tokens, security groups, [`Storage`] and token [`Buckets`]. It is a state machine that does
//! nothing by itself: the clock and the random numbers are arguments. [`Faults`] decides which
//! calls fail, and how. The caller must ask it before it carries out an operation.
//!
//! The arguments are the requests of the port of the crate `provider-aws`, and the errors are its
//! errors.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod buckets;
mod cloud;
mod faults;
mod firewall;
mod machine;
mod random;
mod storage;

pub use buckets::{Buckets, Limits, Rate};
pub use cloud::{Cloud, Fleet, Habits, Pace, RECLAIMED, TEMPLATE_MISSING, YoungGroups};
pub use faults::{Fault, Faults, ZoneDown, error, refusal};
pub use firewall::{Firewall, Rule, SecurityGroup, canonical};
pub use machine::{End, Machine};
pub use random::SplitMix64;
pub use storage::{Copy, Disk, Storage};
