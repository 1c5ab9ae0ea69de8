//! Encodes responses.

mod json;
pub mod protobuf;
pub mod response;
mod writer;
