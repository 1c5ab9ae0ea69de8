//! Composition function: claims become desired resources.
//!
//! [`kinds`] is the table of the kinds that it serves. `function-server` takes Crossplane's
//! calls, and `function-runtime` says what a kind is.

pub mod kinds;
mod workspace;
