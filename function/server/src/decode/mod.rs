//! Decodes requests.

pub mod call;
mod json;
mod protobuf;
