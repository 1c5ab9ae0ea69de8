//! Composition function: a workspace claim becomes desired resources.
//!
//! [`service`] takes Crossplane's calls, [`request`] takes out of them what a
//! decision may depend on, [`mod@render`] decides, [`response`] adds the decision to
//! what earlier steps of the pipeline left. Everything between is pure: the same
//! request gives the same response.
//!
//! Two rules stand above the others. Nothing that is observed is dropped for
//! want of knowledge: the function holds it ([`hold`]). And nothing of a bad
//! claim is half applied: the function refuses it ([`refusal`]).
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        reason = "a test fails by panicking"
    )
)]

pub mod catalogue;
pub mod claim_paths;
pub mod composite;
pub mod hold;
pub mod image;
pub mod input;
pub mod limits;
pub mod observed;
pub mod pool;
pub mod refusal;
pub mod render;
pub mod request;
pub mod resolve;
pub mod response;
pub mod schema;
pub mod service;
pub mod software;
pub mod status;
pub mod user_data;
