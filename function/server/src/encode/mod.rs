//! Responses, into their bytes.

pub mod protobuf;
pub mod response;
