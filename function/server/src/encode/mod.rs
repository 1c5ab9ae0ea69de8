//! Encodes responses.

pub mod protobuf;
pub mod response;
