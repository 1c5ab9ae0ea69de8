//! The decisions about spot pools as pure functions: [`plan`] computes a [`Plan`] from [`Desired`],
//! [`Observed`] and the time.
//!
//! Every function is synchronous, total and deterministic. The crate knows neither Kubernetes nor
//! AWS: the controller carries out its plans.
//!
//! Read in this order: [`Offering`], [`Instance`], [`Desired`], [`Observed`], [`plan`], [`Plan`].

mod back_off;
mod class;
mod console;
mod group;
mod home;
mod instance;
mod launch;
mod message;
mod offering;
mod plan;
mod pool;
mod rate_limiter;
mod token;
mod unavailable;

pub use back_off::back_off;
pub use class::{ErrorClass, Refusal};
pub use console::{Console, ConsoleReading};
pub use group::{Group, GroupRules};
pub use home::{
    Attachment, Home, HomeHold, HomeRecord, HomeStep, HomeWait, ObservedHome, OnDelete,
    SnapshotState, Volume, VolumeSnapshot, VolumeState,
};
pub use instance::{Checks, Instance, InstanceState, Notice, NoticeKind, ScheduledEvent};
pub use launch::{Launch, Launched};
pub use message::stable_message;
pub use offering::{Market, Offering, QuotaFamily, TypePreference};
pub use plan::{Action, Choice, Disruption, HomeAction, Phase, Plan, Wait, offerings, plan};
pub use pool::{Desired, Lease, Observed, Rebalance, Replace, SecurityGroups, Size, Spread};
pub use rate_limiter::RateLimiter;
pub use token::{client_token, digest, volume_token};
pub use unavailable::{Unavailable, UnavailableOfferings};
