//! Requests, from their bytes.

pub mod call;
mod json;
mod protobuf;
