//! The provider's loop against an EC2 and an API server in memory.
//!
//! [`Earth`](earth::Earth) is the state that survives a crash: EC2 and the stored pool.
//! [`World`](world::World) runs one provider on it, with the same [`Pass`] as in production, and
//! makes it crash before or after any of its effects. EC2 itself is [`memory_ec2`]. Rules that must
//! hold for every effect are checked where the effect happens, in [`port`](port) and
//! [`store`](store). Rules that must hold between two reconciles are in [`invariants`].
//!
//! Start reading at the tests. `launches`, `activity`, `refusals`, `groups`, `homes`, `moves`,
//! `leases`, `orphans`, `deletion`, `consoles` and `ends` have one topic each. `crashes` crashes at every
//! effect of a pool's life. `schedules` uses random events, and `neighbours` has two pools.
//!
//! [`Pass`]: crate::pass::Pass

mod accounts;
mod activity;
mod announcements;
mod births;
mod calm;
mod earth;
mod edits;
mod invariants;
mod lending;
mod ours;
mod port;
mod prices;
mod provider;
mod storage;
mod store;
mod world;

mod consoles;
mod crashes;
mod deletion;
mod ends;
mod events;
mod groups;
mod homes;
mod keys;
mod launches;
mod leases;
mod luck;
mod moves;
mod neighbours;
mod orphans;
mod ownership;
mod policies;
mod promises;
mod reach;
mod refusals;
mod restore;
mod schedules;
mod taken_back;
mod zone_down;

pub use world::{ec2_for_tests, for_tests as pool_for_tests, instance_for_tests};
