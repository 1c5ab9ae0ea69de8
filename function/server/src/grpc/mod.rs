//! The function as a gRPC service.

pub mod codec;
pub mod descriptors;
pub mod endpoint;
