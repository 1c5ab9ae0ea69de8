//! The metrics of the server, and the endpoint that serves them.

pub mod calls;
pub mod endpoint;
