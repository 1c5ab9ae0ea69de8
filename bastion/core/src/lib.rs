//! The bastion, without side effects.
//!
//! [`accounts`], [`certificates`] and [`grants`] say who may log in; [`names`] has an account of sshd for
//! every name. [`agent`] is how ssh gets the bastion's own certificates. [`words`] reads a command line,
//! which no shell runs. [`target`] finds the pod of a workspace. [`audit`] is the log: each line has the
//! hash of the line before. [`protocol`] has the messages between a login's process and the broker.
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::panic,
        reason = "a test fails by panicking"
    )
)]

pub mod accounts;
pub mod agent;
pub mod audit;
pub mod calls;
pub mod certificates;
pub mod grants;
pub mod names;
pub mod processes;
pub mod protocol;
pub mod target;
pub mod words;
