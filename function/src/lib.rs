//! The composition function for GPU workspaces: it turns claims into desired resources.
//!
//! [`kinds`] is the table of the kinds that it serves. `function-server` receives Crossplane's
//! calls, and `function-runtime` defines what a kind is.

pub mod kinds;
mod workspace;
