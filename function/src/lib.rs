//! Composition function: a workspace claim becomes desired resources.
//!
//! [`service`] takes Crossplane's calls, [`request`] takes out of them what a
//! decision may depend on, [`mod@render`] decides, [`response`] adds the decision to
//! what earlier steps of the pipeline left. Everything between is pure: the same
//! request gives the same response.
//!
//! Two rules stand above the others. Nothing that is observed is dropped for
//! want of knowledge: the function holds it ([`keep`]). And nothing of a bad
//! claim is half applied: the function refuses it ([`outcome`]).
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        reason = "a test fails by panicking"
    )
)]

pub mod call;
pub mod capacity;
pub mod catalogue;
pub mod cause;
pub mod claim;
pub mod claim_paths;
pub mod cluster;
pub mod compose;
pub mod composite;
pub mod conditions;
pub mod connection;
pub mod cost;
pub mod desired;
pub mod dev_user;
pub mod encode;
pub mod finding;
pub mod flavor;
pub mod homes;
pub mod image;
pub mod input;
pub mod instance_types;
pub mod json;
pub mod keep;
pub mod kind;
pub mod kinds;
pub mod labels;
pub mod lifecycle;
pub mod login;
pub mod managed;
pub mod on_demand;
pub mod outcome;
pub mod owner;
pub mod placement;
pub mod policy;
pub mod prices;
pub mod public_keys;
pub mod quantity;
pub mod render;
pub mod replacement;
pub mod request;
pub mod requirement;
pub mod requirements;
pub mod resolve;
pub mod resource_names;
pub mod response;
pub mod server;
pub mod service;
pub mod software;
pub mod spending;
pub mod spot;
pub mod ssh_networks;
pub mod status;
pub mod user_data;
pub mod validation;
pub mod wanted;
pub mod wire;
