//! EC2 in memory, as AWS documents it.
//!
//! [`Cloud`] is one region of one account: instances, launch templates, fleets by
//! their tokens, security groups, [`Storage`] and token [`Buckets`]. It is a state machine that
//! does nothing by itself: clock and dice are arguments. What fails, and how, is in
//! [`Faults`]; whoever calls asks it first.
//!
//! It speaks in the requests of provider-aws's port, and answers with its errors.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod buckets;
mod cloud;
mod faults;
mod firewall;
mod random;
mod storage;

pub use buckets::{Buckets, Limits, Rate};
pub use cloud::{Cloud, End, Fleet, Machine, Pace, RECLAIMED, TEMPLATE_MISSING};
pub use faults::{Fault, Faults, error};
pub use firewall::{Firewall, Rule, SecurityGroup};
pub use random::SplitMix64;
pub use storage::{Copy, Disk, Storage};
