//! The portal, without side effects.
//!
//! [`identity`] says who a person is, from the claims of a token. [`account`] finds the person's
//! `DevUser`. [`bindings`] and [`visible`] say whose claims they see. [`view`] is what they see of one. [`ring`] has the
//! changes of all claims, for open pages. [`offer`] is what the platform offers, and
//! [`wish`] what they ask for. [`problem`] is what is said when
//! something is refused. [`origin`] tells a request of the portal's own page from others.
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::panic,
        reason = "a test fails by panicking"
    )
)]

pub mod account;
pub mod bindings;
pub mod identity;
pub mod offer;
pub mod origin;
pub mod problem;
pub mod ring;
pub mod view;
pub mod visible;
pub mod wish;
