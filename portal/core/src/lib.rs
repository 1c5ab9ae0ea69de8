//! The portal, without side effects.
//!
//! [`identity`] maps the claims of a token to a user with groups. [`account`] finds the user's `DevUser`.
//! [`bindings`] finds the namespaces in which a user may have rights, and [`visible`] holds those whose claims they
//! may list. [`view`] makes rows of claims. [`ring`] keeps the latest changes of all claims for open pages.
//! [`offer`] lists the machines of the platform's flavors. [`wish`] makes a claim of a request. [`problem`] is a
//! refusal. [`origin`] tells a request of the portal's own page from others.
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
pub mod key;
pub mod offer;
pub mod origin;
pub mod problem;
pub mod ring;
pub mod selection;
pub mod shape;
pub mod timeline;
pub mod view;
pub mod visible;
pub mod wish;
